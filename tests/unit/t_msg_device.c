/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages from and to memory of devices: which bytes arrive where. What goes wrong: t_msg_device_ends.c. */
#include "msg_device.h"

static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_ALLOCATED | FI_MR_LOCAL };
#define MODES ((int)MRF_ARRAY_SIZE(modes))
/* Every runtime, each end, in all modes. */
#define ALL (RIGS * ENDS * MODES)

static void open_ith(int i)
{
	open_ends(i % RIGS, (enum ends)(i / RIGS % ENDS + 1), modes[i / RIGS / ENDS]);
}

static const size_t sizes[] = { 1,
				256,
				257,
				4096,
				SHORT,
				SHORT + 1,
				MRF_STAGE_CHUNK,
				MRF_STAGE_CHUNK + 1,
				MRF_STAGE_RING,
				MRF_STAGE_RING + 3,
				LEN };

START_TEST(device_bytes_arrive)
{
	size_t i;

	open_ith(_i);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++)
		one_arrives(13, sizes[i]);
	want_none(&p.a);
	want_none(&p.b);
	close_ends();
}
END_TEST

START_TEST(device_bytes_wait_for_their_receive)
{
	size_t i, at;

	open_ith(_i);
	for (i = at = 0; i < MRF_ARRAY_SIZE(sizes); at += sizes[i++])
		ck_assert_int_eq(send_at(at, sizes[i]), 0);
	want_soon(unexpected() == MRF_ARRAY_SIZE(sizes));
	for (i = at = 0; i < MRF_ARRAY_SIZE(sizes); at += sizes[i++])
		ck_assert_int_eq(recv_at(at, sizes[i]), 0);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++)
		want_ok(&p.b, NULL);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++)
		want_ok(&p.a, NULL);
	ck_assert(is_there(0, 0, at));
	close_ends();
}
END_TEST

START_TEST(device_receive_cuts_what_does_not_fit)
{
	static const size_t rooms[] = { 0, 1, 100, SHORT, MRF_STAGE_CHUNK + 5, LEN - 1 };
	size_t i;

	open_ith(_i);
	for (i = 0; i < MRF_ARRAY_SIZE(rooms); i++) {
		erase();
		ck_assert_int_eq(recv_at(0, rooms[i]), 0);
		ck_assert_int_eq(send_at(0, rooms[i] < SHORT ? SHORT : LEN), 0);
		ck_assert_int_eq(want_err(&p.b, in.mem, FI_ETRUNC, NULL), 4320);
		want_sent(0);
		ck_assert(is_there(0, 0, rooms[i]));
		end_get(&in, rooms[i], got, 100);
		ck_assert(!got[0] && !memcmp(got, got + 1, 99));
	}
	close_ends();
}
END_TEST

/* --- several buffers ----------------------------------------------------------------------- */

#define BUFS 5u

/* Every other one is in memory of the host that has no region, where none is needed. */
static void cut(const struct end *end, uint8_t *host, size_t len, struct iovec *iov, void **desc)
{
	size_t i, part = len / BUFS;

	for (i = 0; i < BUFS; i++) {
		bool mixed = i % 2 && host;

		iov[i] = (struct iovec){ (mixed ? host : end->mem) + i * part, part };
		desc[i] = mixed ? NULL : desc_of(end);
	}
	iov[BUFS - 1].iov_len = len - (BUFS - 1) * part;
}

static void many_buffers_arrive(size_t len, bool local)
{
	uint8_t *from = local ? NULL : pages(len), *upto = local ? NULL : pages(len);
	struct iovec iov[BUFS];
	void *desc[BUFS];
	size_t i, part = len / BUFS;

	erase();
	if (from)
		memcpy(from, want, len);
	cut(&in, upto, len, iov, desc);
	ck_assert_int_eq(fi_recvv(p.b.ep, iov, desc, BUFS, FI_ADDR_UNSPEC, &in), 0);
	cut(&out, from, len, iov, desc);
	ck_assert_int_eq(fi_sendv(p.a.ep, iov, desc, BUFS, p.to, &out), 0);
	want_ok(&p.b, &in);
	want_ok(&p.a, &out);
	for (i = 0; i < BUFS; i++) {
		if (i % 2 && upto)
			ck_assert(!memcmp(upto + i * part, want + i * part, part));
		else
			ck_assert(is_there(i * part, i * part, part));
	}
}

START_TEST(device_buffers_are_some_of_many)
{
	open_ith(_i);
	many_buffers_arrive(100, modes[_i / RIGS / ENDS] & FI_MR_LOCAL);
	many_buffers_arrive(SHORT, modes[_i / RIGS / ENDS] & FI_MR_LOCAL);
	many_buffers_arrive(LEN, modes[_i / RIGS / ENDS] & FI_MR_LOCAL);
	close_ends();
}
END_TEST

/* --- one buffer for many messages ----------------------------------------------------------- */

START_TEST(device_buffer_takes_many_messages)
{
	static const size_t lens[] = { 100, LEN, SHORT, MRF_STAGE_CHUNK, 65536 };
	struct iovec iov = { in.mem, 0 };
	struct fi_cq_data_entry entry;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	size_t i, total = 0;
	void *desc;

	open_ith(_i);
	for (i = 0; i < MRF_ARRAY_SIZE(lens); i++)
		total += lens[i];
	desc = desc_of(&in);
	msg.desc = &desc;
	msg.context = &in;
	iov = (struct iovec){ in.mem, total };
	ck_assert_int_eq(fi_recvmsg(p.b.ep, &msg, FI_MULTI_RECV), 0);
	for (i = total = 0; i < MRF_ARRAY_SIZE(lens); total += lens[i++])
		ck_assert_int_eq(send_at(total, lens[i]), 0);
	for (i = 0; i < MRF_ARRAY_SIZE(lens); i++) {
		entry = want_ok(&p.b, &in);
		ck_assert_uint_eq(!!(entry.flags & FI_MULTI_RECV), i + 1 == MRF_ARRAY_SIZE(lens));
		want_ok(&p.a, NULL);
	}
	ck_assert(is_there(0, 0, total));
	close_ends();
}
END_TEST

/* --- tags, and other ways of sending --------------------------------------------------------- */

START_TEST(device_tag_finds_its_receive)
{
	size_t i;

	open_ith(_i);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(fi_trecv(p.b.ep, in.mem + i * LEN, LEN, desc_of(&in),
					  FI_ADDR_UNSPEC, i, 0, in.mem + i * LEN),
				 0);
	ck_assert_int_eq(fi_tsend(p.a.ep, out.mem, 100, desc_of(&out), p.to, 1, &out), 0);
	ck_assert_int_eq(fi_tsend(p.a.ep, out.mem, LEN, desc_of(&out), p.to, 0, &out), 0);
	for (i = 0; i < 2; i++) {
		want_ok(&p.b, NULL);
		want_ok(&p.a, &out);
	}
	ck_assert(is_there(0, 0, LEN));
	ck_assert(is_there(0, LEN, 100));
	close_ends();
}
END_TEST

START_TEST(device_message_is_claimed)
{
	struct iovec iov;
	void *desc;
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	struct fi_cq_data_entry entry;
	size_t len = _i % 2 ? LEN : SHORT;

	open_ith(_i / 2);
	iov = (struct iovec){ in.mem, LEN };
	desc = desc_of(&in);
	msg.desc = &desc;
	msg.context = &in;
	ck_assert_int_eq(fi_tsend(p.a.ep, out.mem, len, desc_of(&out), p.to, 0, &out), 0);
	want_soon(unexpected() == 1);
	ck_assert_int_eq(fi_trecvmsg(p.b.ep, &msg, FI_PEEK | FI_CLAIM), 0);
	entry = want_ok(&p.b, &in);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_int_eq(fi_trecvmsg(p.b.ep, &msg, FI_CLAIM), 0);
	want_ok(&p.b, &in);
	want_ok(&p.a, &out);
	ck_assert(is_there(0, 0, len));
	close_ends();
}
END_TEST

/* With its descriptor. What fi_inject sends has none, and may be the host's only. */
START_TEST(device_bytes_are_injected)
{
	struct iovec iov;
	void *desc;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .desc = &desc, .context = &out };

	open_ith(_i);
	iov = (struct iovec){ out.mem, 256 };
	desc = desc_of(&out);
	msg.addr = p.to;
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(fi_sendmsg(p.a.ep, &msg, FI_INJECT | FI_COMPLETION), 0);
	memset(got, 0, 256);
	end_put(&out, 0, got, 256);
	want_ok(&p.b, in.mem);
	want_ok(&p.a, &out);
	ck_assert(is_there(0, 0, 256));
	if (out.device)
		ck_assert_int_eq(fi_inject(p.a.ep, out.mem, 8, p.to), -FI_EINVAL);
	close_ends();
}
END_TEST

START_TEST(device_memory_has_the_rights_of_its_region)
{
	struct fid_mr *mr;

	open_ends(_i, BOTH, FI_MR_ALLOCATED);
	mr = reg_device(&p.a, out.mem, LEN, FI_RECV, 5);
	ck_assert_int_eq(fi_send(p.a.ep, out.mem, 8, fi_mr_desc(mr), p.to, &p), -FI_EACCES);
	ck_assert_int_eq(fi_send(p.a.ep, out.mem, LEN, fi_mr_desc(mr), p.to, &p), -FI_EACCES);
	ck_assert_int_eq(fi_send(p.a.ep, out.mem, 8, NULL, p.to, &p), -FI_EINVAL);
	must_close(&mr->fid);
	mr = reg_device(&p.b, in.mem, LEN, FI_SEND, 5);
	ck_assert_int_eq(fi_recv(p.b.ep, in.mem, 8, fi_mr_desc(mr), FI_ADDR_UNSPEC, &p),
			 -FI_EACCES);
	ck_assert_int_eq(fi_recv(p.b.ep, in.mem, 8, NULL, FI_ADDR_UNSPEC, &p), -FI_EINVAL);
	must_close(&mr->fid);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

/* --- when ---------------------------------------------------------------------------------- */

/* The message is there when its sender is told so: the last of so many copies is held. */
START_TEST(device_delivery_is_told_when_the_bytes_are_there)
{
	static const struct {
		size_t len;
		unsigned copies;
	} cases[] = { { SHORT, 1 }, { LEN, 6 } };
	struct iovec iov;
	void *desc;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .desc = &desc, .context = &out };

	open_ends(_i % RIGS, RECEIVER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	erase();
	iov = (struct iovec){ out.mem, cases[_i / RIGS].len };
	desc = desc_of(&out);
	msg.addr = p.to;
	ck_assert_int_eq(recv_at(0, LEN), 0);
	hold(cases[_i / RIGS].copies);
	ck_assert_int_eq(fi_sendmsg(p.a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
	/* Nobody polls the receiver: its agent takes the message in. */
	want_soon(is_inside());
	usleep(20000);
	nothing_completed();
	let_go();
	want_got(0, cases[_i / RIGS].len);
	want_ok(&p.a, &out);
	close_ends();
}
END_TEST

/* As many as there are places are on their way while the first one is copied. */
START_TEST(device_parts_come_while_others_are_copied)
{
	struct mrf_inbox *inbox;

	open_ends(_i, RECEIVER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	erase();
	inbox = node_ep(&p.b)->inbox;
	hold(1);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_soon(is_inside());
	/* The other thread copies all of the rest for which there are places. */
	want_soon(atomic_load(&copies) >= 4);
	mrf_lock_take(&inbox->ep->lock);
	ck_assert_uint_gt(inbox->copying, 0);
	mrf_lock_release(&inbox->ep->lock);
	let_go();
	want_got(0, LEN);
	want_sent(0);
	close_ends();
}
END_TEST

/* More than there are rings for transfers wait for receives, both ways, and hold none. */
START_TEST(device_messages_wait_without_memory)
{
	const unsigned n = 40;
	const size_t len = 30000;
	struct end *ends[] = { &out, &in };
	fi_addr_t back;
	unsigned i;

	open_ends(_i, BOTH, FI_MR_ALLOCATED);
	back = node_insert(&p.b, &p.a);
	for (i = 0; i < 2; i++) {
		end_mr_close(ends[i]);
		ends[i]->mr = reg_device(ends[i]->node, ends[i]->mem, ROOM, FI_SEND | FI_RECV, 9);
	}
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(send_at(i * len, len), 0);
		ck_assert_int_eq(fi_send(p.b.ep, in.mem + i * len, len, desc_of(&in), back, &p), 0);
	}
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(recv_at(ROOM / 2 + i * len, len), 0);
		ck_assert_int_eq(fi_recv(p.a.ep, out.mem + ROOM / 2 + i * len, len, desc_of(&out),
					 FI_ADDR_UNSPEC, &p),
				 0);
	}
	for (i = 0; i < 2 * n; i++) {
		want_ok(&p.a, NULL);
		want_ok(&p.b, NULL);
	}
	ck_assert(is_there(0, ROOM / 2, n * len));
	close_ends();
}
END_TEST

/* Short ones have slots, and if these are used up wait like long ones. */
START_TEST(device_short_messages_wait_without_memory)
{
	const unsigned n = 400;
	unsigned i;

	open_ends(_i, SENDER, FI_MR_ALLOCATED);
	one_arrives(0, SHORT);
	fake_hold(true);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(send_at(0, SHORT), 0);
	fake_hold(false);
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(recv_at(0, SHORT), 0);
		want_got(0, SHORT);
		want_sent(0);
	}
	close_ends();
}
END_TEST

static TCase *tcase_bytes(void)
{
	TCase *tc = tcase_create("bytes");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, device_bytes_arrive, 0, ALL);
	tcase_add_loop_test(tc, device_bytes_wait_for_their_receive, 0, ALL);
	tcase_add_loop_test(tc, device_receive_cuts_what_does_not_fit, 0, ALL);
	tcase_add_loop_test(tc, device_buffers_are_some_of_many, 0, ALL);
	tcase_add_loop_test(tc, device_buffer_takes_many_messages, 0, ALL);
	tcase_add_loop_test(tc, device_tag_finds_its_receive, 0, ALL);
	tcase_add_loop_test(tc, device_message_is_claimed, 0, 2 * ALL);
	tcase_add_loop_test(tc, device_bytes_are_injected, 0, ALL);
	tcase_add_loop_test(tc, device_memory_has_the_rights_of_its_region, 0, RIGS);
	return tc;
}

static TCase *tcase_times(void)
{
	TCase *tc = tcase_create("times");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, device_delivery_is_told_when_the_bytes_are_there, 0, 2 * RIGS);
	tcase_add_loop_test(tc, device_parts_come_while_others_are_copied, 0, RIGS);
	tcase_add_loop_test(tc, device_messages_wait_without_memory, 0, RIGS);
	tcase_add_loop_test(tc, device_short_messages_wait_without_memory, 0, RIGS);
	return tc;
}

UNIT_MAIN("messages of devices", tcase_bytes, tcase_times)

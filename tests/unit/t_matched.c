/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that complete when a receive has taken them, or their receiver has dropped them
 * (FI_MATCH_COMPLETE), on the fake fabric.
 */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>
#include "two_ends.h"
#include "proto/frame.h"

#define LONG (40u << 10)
#define N 8u
#define ROOM (N * LONG)
#define TAG 5
#define CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_RMA | FI_ATOMIC)

static const size_t sizes[] = { 0, 1, 256, 257, 16384, LONG };
#define SIZES ((int)MRF_ARRAY_SIZE(sizes))

static void open_with(int mr_mode, uint64_t op_flags)
{
	ends_open(&(struct node_opt){ .mr_mode = mr_mode, .caps = CAPS, .op_flags = op_flags },
		  ROOM);
}

static void send_flags(unsigned i, size_t len, uint64_t flags)
{
	struct iovec iov = { out + i * LONG, len };
	void *desc = desc_of(out_mr);
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .desc = out_mr ? &desc : NULL,
				     .iov_count = 1,
				     .addr = to,
				     .tag = TAG,
				     .context = out + i * LONG };

	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, flags), 0);
}

static void send_matched(unsigned i, size_t len)
{
	send_flags(i, len, FI_MATCH_COMPLETE);
}

static void recv_at(unsigned i, size_t len)
{
	ck_assert_int_eq(fi_trecv(b.ep, in + i * LONG, len, desc_of(in_mr), FI_ADDR_UNSPEC, TAG, 0,
				  in + i * LONG),
			 0);
}

static void want_sent(unsigned i)
{
	ck_assert_uint_eq(want_ok(&a, out + i * LONG).flags, FI_TAGGED | FI_SEND);
}

static void want_got(unsigned i, size_t len)
{
	ck_assert_uint_eq(want_ok(&b, in + i * LONG).len, len);
	ck_assert_int_eq(memcmp(in + i * LONG, out + i * LONG, len), 0);
}

/* Message i is at b, where nothing takes it, and a is told nothing. */
static void wait_there(unsigned i, size_t len)
{
	unsigned n = offers();

	send_matched(i, len);
	want_soon(offers() == n + 1);
	want_none(&a);
}

/* --- what completes it ----------------------------------------------------------------- */

START_TEST(a_message_completes_when_it_is_matched)
{
	size_t len = sizes[_i / MODES];

	open_with(modes[_i % MODES], 0);
	wait_there(0, len);
	recv_at(0, len);
	want_got(0, len);
	want_sent(0);
	/* The receive may be there before. */
	recv_at(1, len);
	send_matched(1, len);
	want_got(1, len);
	want_sent(1);
	want_idle(&a);
	ends_close();
}
END_TEST

/* The buffer of an injected one can be used at once. */
START_TEST(an_injected_message_may_wait_for_its_match)
{
	uint8_t was;

	open_with(0, 0);
	send_flags(0, 200, FI_MATCH_COMPLETE | FI_INJECT);
	was = out[0]++;
	want_none(&a);
	recv_at(0, 200);
	want_ok(&b, in);
	ck_assert_uint_eq(in[0], was);
	want_sent(0);
	ends_close();
}
END_TEST

/* Its receiver has read no more of it than there is room for, or nothing. */
START_TEST(a_message_that_is_cut_is_matched)
{
	static const size_t rooms[] = { 0, 10 };
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e = { 0 };

	open_with(0, 0);
	wait_there(0, 1000);
	recv_at(0, rooms[_i]);
	want_sent(0);
	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
	ck_assert_int_eq(e.err, FI_ETRUNC);
	ck_assert_uint_eq(e.olen, 1000 - rooms[_i]);
	ends_close();
}
END_TEST

static void about(uint64_t flags)
{
	struct iovec iov = { in, LONG };
	void *desc = desc_of(in_mr);
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .desc = in_mr ? &desc : NULL,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .tag = TAG,
				     .context = in };

	ck_assert_int_eq(fi_trecvmsg(b.ep, &msg, flags), 0);
}

/* Looking at it and setting it aside take it from nobody. */
START_TEST(a_message_that_is_dropped_completes)
{
	size_t len = sizes[_i / 2];

	open_with(0, 0);
	wait_there(0, len);
	about(FI_PEEK);
	want_ok(&b, in);
	want_none(&a);
	about(FI_PEEK | (_i % 2 ? FI_CLAIM : FI_DISCARD));
	want_ok(&b, in);
	if (_i % 2) {
		want_none(&a);
		about(FI_CLAIM | FI_DISCARD);
		want_ok(&b, in);
	}
	want_sent(0);
	ck_assert_uint_eq(offers(), 0);
	ends_close();
}
END_TEST

START_TEST(a_claimed_message_completes_with_its_receive)
{
	size_t len = sizes[_i];

	open_with(0, 0);
	wait_there(0, len);
	about(FI_PEEK | FI_CLAIM);
	want_ok(&b, in);
	want_none(&a);
	about(FI_CLAIM);
	want_got(0, len);
	want_sent(0);
	ends_close();
}
END_TEST

START_TEST(a_receive_that_is_canceled_matches_nothing)
{
	open_with(0, 0);
	recv_at(0, LONG);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in), 0);
	want_err(&b, in, FI_ECANCELED, NULL);
	wait_there(0, 8);
	recv_at(1, LONG);
	want_ok(&b, in + LONG);
	want_sent(0);
	ends_close();
}
END_TEST

/* --- among others ---------------------------------------------------------------------- */

/* Of all lengths, and others between them that wait for nobody. */
START_TEST(messages_match_in_the_order_in_which_they_were_sent)
{
	unsigned i;

	open_with(modes[_i], 0);
	for (i = 0; i < N; i++)
		send_flags(i, 100 * i, i % 2 ? FI_MATCH_COMPLETE : 0);
	for (i = 0; i < N; i += 2)
		want_sent(i);
	want_none(&a);
	for (i = 0; i < N; i++) {
		recv_at(i, LONG);
		want_got(i, 100 * i);
		if (i % 2)
			want_sent(i);
		want_none(&a);
	}
	ends_close();
}
END_TEST

static void send_untagged(unsigned i, size_t len)
{
	struct iovec iov = { out + i * len, len };
	void *desc = desc_of(out_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = out + i };

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_MATCH_COMPLETE), 0);
}

START_TEST(a_buffer_for_many_takes_them)
{
	struct iovec iov;
	void *desc;
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1 };
	unsigned i;

	open_with(modes[_i], 0);
	iov = (struct iovec){ in, LONG };
	desc = desc_of(in_mr);
	msg.context = in;
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < 3; i++) {
		send_untagged(i, 100);
		want_ok(&a, out + i);
		ck_assert_uint_eq(want_ok(&b, in).len, 100);
	}
	ck_assert_int_eq(memcmp(in, out, 300), 0);
	ends_close();
}
END_TEST

START_TEST(an_endpoint_waits_for_itself)
{
	fi_addr_t self;

	open_with(0, 0);
	self = node_insert(&a, &a);
	to = self;
	send_matched(0, 8);
	want_none(&a);
	ck_assert_int_eq(fi_trecv(a.ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, in), 0);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	ends_close();
}
END_TEST

/* --- as a flag of the endpoint ---------------------------------------------------------- */

START_TEST(calls_without_flags_wait_for_it)
{
	struct iovec iov;
	unsigned i;

	open_with(0, _i ? 0 : FI_MATCH_COMPLETE);
	if (_i) {
		uint64_t flags = FI_TRANSMIT | FI_MATCH_COMPLETE;

		send_flags(0, 8, 0);
		want_sent(0);
		recv_at(0, 8);
		want_got(0, 8);
		ck_assert_int_eq(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
	}
	iov = (struct iovec){ out, 8 };
	ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, to, out), 0);
	ck_assert_int_eq(fi_sendv(a.ep, &iov, NULL, 1, to, out + 1), 0);
	ck_assert_int_eq(fi_senddata(a.ep, out, 8, NULL, 7, to, out + 2), 0);
	want_none(&a);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
		want_ok(&b, in);
		want_ok(&a, out + i);
	}
	ck_assert_int_eq(fi_tsend(a.ep, out, 8, NULL, to, TAG, out), 0);
	want_none(&a);
	/* Calls that inject, and those that have flags, do not look at it. */
	ck_assert_int_eq(fi_tinject(a.ep, out, 8, to, TAG), 0);
	send_flags(1, 8, FI_COMPLETION);
	want_sent(1);
	recv_at(0, 8);
	want_got(0, 8);
	want_sent(0);
	ends_close();
}
END_TEST

/* They are matched with nothing. */
START_TEST(accesses_complete_as_ever)
{
	struct fi_msg_rma msg = { .data = 0 };
	struct fid_mr *mr;
	uint64_t word = 1;
	uint64_t base;

	open_with(FI_MR_ALLOCATED, FI_MATCH_COMPLETE);
	mr = node_reg(&b, in, ROOM, REMOTE_RW, 9);
	base = (uintptr_t)in;
	if (!(b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR))
		base = 0;
	ck_assert_int_eq(fi_write(a.ep, out, LONG, NULL, to, base, 9, out), 0);
	want_ok(&a, out);
	ck_assert_int_eq(fi_writedata(a.ep, out, 8, NULL, 5, to, base, 9, out), 0);
	want_ok(&a, out);
	ck_assert_int_eq(fi_read(a.ep, out + LONG, LONG, NULL, to, base, 9, out), 0);
	want_ok(&a, out);
	ck_assert_int_eq(fi_atomic(a.ep, &word, 1, NULL, to, base, 9, FI_UINT64, FI_SUM, out), 0);
	want_ok(&a, out);
	ck_assert_int_eq(fi_writemsg(a.ep, &msg, FI_MATCH_COMPLETE), -FI_EBADFLAGS);
	must_close(&mr->fid);
	ends_close();
}
END_TEST

START_TEST(a_counter_counts_what_is_matched)
{
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_ep *ep;

	open_with(0, 0);
	ck_assert_int_eq(fi_cntr_open(a.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &a.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	must_close(&a.ep->fid);
	a.ep = ep;
	wait_there(0, 8);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	recv_at(0, 8);
	want_got(0, 8);
	ck_assert_int_eq(fi_cntr_wait(cntr, 1, LONG_MS), 0);
	want_sent(0);
	must_close(&a.ep->fid);
	a.ep = NULL;
	must_close(&cntr->fid);
	ck_assert_int_eq(node_try_ep(&a, &(struct node_opt){ .caps = CAPS }, &a.ep), 0);
	ends_close();
}
END_TEST

/* --- what is lost ---------------------------------------------------------------------- */

/* Both have arrived, in any order: the bytes of one that had to wait come later. */
static void want_both(size_t len)
{
	want_ok(&b, NULL);
	want_ok(&b, NULL);
	ck_assert_int_eq(memcmp(in, out, len), 0);
	ck_assert_int_eq(memcmp(in + LONG, out + LONG, 8), 0);
}

START_TEST(a_message_waits_through_the_end_of_its_line)
{
	size_t len = sizes[_i];

	open_with(0, 0);
	wait_there(0, len);
	fake_break_frame(1, 1, MRF_WC_OTHER, false);
	send_flags(1, 8, 0);
	want_sent(1);
	want_none(&a);
	recv_at(0, LONG);
	recv_at(1, LONG);
	want_both(len);
	want_sent(0);
	want_idle(&a);
	ck_assert_uint_eq(offers(), 0);
	ends_close();
}
END_TEST

static atomic_bool keeps; /* the fabric keeps what b says of offers */

static enum fake_fate keep_grants(uint8_t *msg, size_t *len, bool from_target)
{
	bool grant = from_target && mrf_frame_type(msg, *len) == MRF_FRAME_GRANT;

	return grant && atomic_load(&keeps) ? FAKE_KEEP : FAKE_DELIVER;
}

/* The word of a message that b has dropped is lost with the line, and b knows nothing of it any more. */
START_TEST(a_match_is_told_over_the_next_line)
{
	open_with(0, 0);
	atomic_store(&keeps, true);
	fake.on_send = keep_grants;
	wait_there(0, sizes[_i]);
	about(FI_PEEK | FI_DISCARD);
	want_ok(&b, in);
	want_none(&a);
	atomic_store(&keeps, false);
	fake_break_frame(1, 1, MRF_WC_OTHER, false);
	send_flags(1, 8, 0);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_idle(&a);
	ends_close();
}
END_TEST

START_TEST(a_receiver_that_closes_has_not_matched_it)
{
	open_with(0, 0);
	wait_there(0, sizes[_i]);
	b_close();
	want_err(&a, out, FI_ECONNREFUSED, NULL);
	want_idle(&a);
	a_close();
}
END_TEST

START_TEST(a_receiver_that_is_killed_has_not_matched_it)
{
	fixture_impatient();
	open_with(0, 0);
	wait_there(0, sizes[_i]);
	fake_kill(node_agent(&b)->cm);
	want_err(&a, out, FI_ECONNREFUSED, NULL);
	want_idle(&a);
	ends_close();
}
END_TEST

START_TEST(a_sender_that_closes_takes_it_along)
{
	fixture_impatient();
	open_with(0, 0);
	wait_there(0, sizes[_i]);
	a_close();
	want_soon(!offers());
	b_close();
}
END_TEST

static TCase *tcase_matched(void)
{
	TCase *tc = tcase_create("matched");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_message_completes_when_it_is_matched, 0, SIZES * MODES);
	tcase_add_test(tc, an_injected_message_may_wait_for_its_match);
	tcase_add_loop_test(tc, a_message_that_is_cut_is_matched, 0, 2);
	tcase_add_loop_test(tc, a_message_that_is_dropped_completes, 0, 2 * SIZES);
	tcase_add_loop_test(tc, a_claimed_message_completes_with_its_receive, 0, SIZES);
	tcase_add_test(tc, a_receive_that_is_canceled_matches_nothing);
	tcase_add_loop_test(tc, messages_match_in_the_order_in_which_they_were_sent, 0, MODES);
	tcase_add_loop_test(tc, a_buffer_for_many_takes_them, 0, MODES);
	tcase_add_test(tc, an_endpoint_waits_for_itself);
	tcase_add_loop_test(tc, calls_without_flags_wait_for_it, 0, 2);
	tcase_add_test(tc, accesses_complete_as_ever);
	tcase_add_test(tc, a_counter_counts_what_is_matched);
	tcase_add_loop_test(tc, a_message_waits_through_the_end_of_its_line, 0, SIZES);
	tcase_add_loop_test(tc, a_match_is_told_over_the_next_line, 0, SIZES);
	tcase_add_loop_test(tc, a_receiver_that_closes_has_not_matched_it, 0, SIZES);
	tcase_add_loop_test(tc, a_receiver_that_is_killed_has_not_matched_it, 0, SIZES);
	tcase_add_loop_test(tc, a_sender_that_closes_takes_it_along, 0, SIZES);
	return tc;
}

UNIT_MAIN("matches of messages", tcase_matched)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of devices where few rings can be made. */
#include "msg_device.h"

static atomic_uint rings, most, together;

/* The first so many come at the same time, others are refused. */
static bool pinnable(const void *addr, size_t len)
{
	unsigned turns = 20000, n;

	(void)addr;
	if (len != MRF_STAGE_RING)
		return true;
	n = atomic_fetch_add(&rings, 1);
	if (n >= atomic_load(&most))
		return false;
	while (atomic_load(&rings) < atomic_load(&together) && turns--)
		usleep(100);
	return true;
}

/* So many completions; some may be of messages for which no ring could be made at one end. */
static unsigned poll_one(struct node *node)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(node->cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		ck_assert_int_eq(fi_cq_readerr(node->cq, &err, 0), 1);
		ck_assert(err.err == FI_ENOMEM || err.err == FI_ECANCELED);
	} else {
		ck_assert(ret == 1 || ret == -FI_EAGAIN);
	}
	return ret != -FI_EAGAIN;
}

static unsigned poll_both(void)
{
	return poll_one(&p.a) + poll_one(&p.b);
}

/* Both send to each other, from devices to devices; each endpoint can make one ring only: nobody waits for ever. */
START_TEST(two_endpoints_with_one_ring_each_send_to_each_other)
{
	fi_addr_t back;
	unsigned n = 0;
	int64_t end;

	open_ends(_i % RIGS, BOTH, FI_MR_ALLOCATED | FI_MR_LOCAL);
	end_mr_close(&out);
	end_mr_close(&in);
	out.mr = reg_device(&p.a, out.mem, ROOM, FI_SEND | FI_RECV, 11);
	in.mr = reg_device(&p.b, in.mem, ROOM, FI_SEND | FI_RECV, 12);
	back = node_insert(&p.b, &p.a);
	atomic_store(&rings, 0);
	/* The second half: two each, which passes. */
	atomic_store(&most, _i < RIGS ? 2 : 4);
	atomic_store(&together, 2);
	fake.is_there = pinnable;
	ck_assert_int_eq(
		fi_recv(p.a.ep, out.mem + LEN * 2, LEN, desc_of(&out), FI_ADDR_UNSPEC, NULL), 0);
	ck_assert_int_eq(fi_recv(p.b.ep, in.mem + LEN * 2, LEN, desc_of(&in), FI_ADDR_UNSPEC, NULL),
			 0);
	ck_assert_int_eq(fi_send(p.a.ep, out.mem, LEN, desc_of(&out), p.to, NULL), 0);
	ck_assert_int_eq(fi_send(p.b.ep, in.mem, LEN, desc_of(&in), back, NULL), 0);
	end = mrf_now_ms() + 10000;
	while (n < 4 && mrf_now_ms() < end)
		n += poll_both();
	ck_assert_msg(n == 4, "%u of 4 completions in 10 s; rings asked for: %u", n,
		      atomic_load(&rings));
	close_ends();
}
END_TEST

/*
 * Two senders' messages want a ring at the same time, and neither can be made. (1: the thread that is
 * told to wait for the other's goes on a little later.)
 */
static atomic_bool slow;

int __real_mrf_stage_ring_take(struct mrf_stage_pool *pool, struct mrf_vpd *pd,
			       struct mrf_stage_ring **ring);
int __wrap_mrf_stage_ring_take(struct mrf_stage_pool *pool, struct mrf_vpd *pd,
			       struct mrf_stage_ring **ring);
int __wrap_mrf_stage_ring_take(struct mrf_stage_pool *pool, struct mrf_vpd *pd,
			       struct mrf_stage_ring **ring)
{
	int ret = __real_mrf_stage_ring_take(pool, pd, ring);

	if (ret == -FI_EAGAIN && atomic_load(&slow))
		usleep(300000);
	return ret;
}

/* The first waits until the second has failed. */
static bool refused(const void *addr, size_t len)
{
	unsigned turns = 20000;

	(void)addr;
	if (len != MRF_STAGE_RING)
		return true;
	if (!atomic_fetch_add(&rings, 1)) {
		while (atomic_load(&rings) < 2 && turns--)
			usleep(100);
		usleep(50000);
	}
	return false;
}

START_TEST(two_senders_and_no_ring)
{
	struct node c;
	fi_addr_t to_b;
	unsigned n = 0;
	int64_t end;
	struct fi_cq_data_entry entry;
	uint8_t *mem = pages(LEN);

	open_ends(0, RECEIVER, FI_MR_ALLOCATED);
	atomic_store(&slow, _i);
	node_open(&c,
		  &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM, .caps = MSG_CAPS });
	to_b = node_insert(&c, &p.b);
	/* Lines and pairs are there. */
	atomic_store(&rings, 0);
	fake.is_there = refused;
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(recv_at(LEN, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	ck_assert_int_eq(fi_send(c.ep, mem, LEN, NULL, to_b, NULL), 0);
	end = mrf_now_ms() + 5000;
	while (n < 2 && mrf_now_ms() < end) {
		struct fi_cq_err_entry err = { .err_data_size = 0 };

		fi_cq_read(p.a.cq, NULL, 0);
		fi_cq_read(c.cq, NULL, 0);
		if (fi_cq_read(p.b.cq, &entry, 1) == -FI_EAVAIL)
			n += fi_cq_readerr(p.b.cq, &err, 0) == 1;
	}
	ck_assert_msg(n == 2, "%u of 2 receives have ended; rings: %u", n, atomic_load(&rings));
	node_close(&c);
	close_ends();
}
END_TEST

/* One sender's message has the only ring, another's waits for it: then something ends. */
enum ends_what { RECEIVER_CLOSES, FIRST_CLOSES, FIRST_KILLED, SECOND_CLOSES, BOTH_CLOSE, WHATS };

START_TEST(one_ends_while_another_waits_for_its_ring)
{
	struct node c;
	fi_addr_t to_b;
	uint8_t *mem = pages(LEN);
	struct fi_cq_err_entry err = { .err_data_size = 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;
	unsigned n, want_ends = 2;

	open_ends(0, RECEIVER, FI_MR_ALLOCATED);
	node_open(&c,
		  &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM, .caps = MSG_CAPS });
	to_b = node_insert(&c, &p.b);
	one_arrives(0, 100);
	atomic_store(&rings, 0);
	atomic_store(&most, 1);
	atomic_store(&together, 1);
	fake.is_there = pinnable;
	fake_hold_pairs(true);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(recv_at(LEN, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_soon((fi_cq_read(p.a.cq, NULL, 0), fi_cq_read(p.b.cq, NULL, 0), atomic_load(&rings)));
	ck_assert_int_eq(fi_send(c.ep, mem, LEN, NULL, to_b, NULL), 0);
	want_soon(
		(fi_cq_read(c.cq, NULL, 0), fi_cq_read(p.b.cq, NULL, 0), atomic_load(&rings) == 2));
	usleep(50000);
	switch ((enum ends_what)_i) {
	case RECEIVER_CLOSES:
		must_close(&p.b.ep->fid);
		node_try_ep(&p.b,
			    &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
						.caps = MSG_CAPS },
			    &p.b.ep);
		want_ends = 0;
		break;
	case FIRST_CLOSES:
		must_close(&p.a.ep->fid);
		node_try_ep(&p.a,
			    &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
						.caps = MSG_CAPS },
			    &p.a.ep);
		want_ends = 1;
		break;
	case FIRST_KILLED:
		fake_kill(node_agent(&p.a)->cm);
		want_ends = 1;
		break;
	case SECOND_CLOSES:
		must_close(&c.ep->fid);
		node_try_ep(&c,
			    &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
						.caps = MSG_CAPS },
			    &c.ep);
		want_ends = 1;
		break;
	case BOTH_CLOSE:
		must_close(&c.ep->fid);
		must_close(&p.a.ep->fid);
		node_try_ep(&p.a,
			    &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
						.caps = MSG_CAPS },
			    &p.a.ep);
		node_try_ep(&c,
			    &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
						.caps = MSG_CAPS },
			    &c.ep);
		want_ends = 0;
		break;
	case WHATS:
		break;
	}
	fake_hold_pairs(false);
	for (n = 0; n < want_ends; n++) {
		ret = fi_cq_sread(p.b.cq, &entry, 1, NULL, 4000);
		fprintf(stderr, "%d: %d\n", _i, (int)ret);
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(p.b.cq, &err, 0);
		ck_assert_msg(ret != -FI_EAGAIN, "case %d: nothing ends", _i);
	}
	node_close(&c);
	close_ends();
}
END_TEST

/*
 * All bytes of a message have come, of which the last are being copied to the device. The line is lost,
 * and there is no pair for the next message. The first was received.
 */
START_TEST(all_has_come_when_there_is_no_pair_any_more)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { .err_data_size = 0 };
	ssize_t ret;
	unsigned i;

	open_ends(0, RECEIVER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	hold(6);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_sent(0);
	want_soon((fi_cq_read(p.b.cq, NULL, 0), atomic_load(&inside)));
	fake_fail(FAKE_VPAIR_OPEN, 2, FI_ENOMEM);
	fake_break_pair(1, 1, MRF_WC_TIMEOUT, false);
	ck_assert_int_eq(recv_at(LEN, LEN), 0);
	ck_assert_int_eq(send_at(LEN, LEN), 0);
	for (i = 0; i < 300 && fi_cq_read(p.a.cq, &entry, 1) != -FI_EAVAIL; i++)
		usleep(10000);
	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
	ck_assert_int_eq(err.err, FI_ECONNREFUSED);
	let_go();
	for (i = 0; i < 2; i++) {
		while ((ret = fi_cq_sread(p.b.cq, &entry, 1, NULL, 5000)) == -FI_EAGAIN)
			;
		if (ret == 1) {
			fprintf(stderr, "received: %s\n",
				entry.op_context == in.mem ? "first" : "second");
			continue;
		}
		ck_assert_int_eq(fi_cq_readerr(p.b.cq, &err, 0), 1);
		fprintf(stderr, "failed: %s: %d\n", err.op_context == in.mem ? "first" : "second",
			err.err);
		ck_assert_msg(err.op_context != in.mem,
			      "the message was sent well and all of it has come, but its receive "
			      "fails with %d",
			      err.err);
	}
	close_ends();
}
END_TEST

/* Messages that wait for their receives leave an access the memory that it goes by way of. */
START_TEST(messages_that_wait_keep_rings_from_accesses)
{
	struct iovec iov;
	void *desc;
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1 };
	unsigned i, turns = 3000;
	ssize_t ret;

	open_ends(0, SENDER, FI_MR_ALLOCATED);
	end_mr_close(&out);
	out.mr = reg_device(&p.a, out.mem, ROOM, FI_SEND | FI_WRITE, 11);
	desc = desc_of(&out);
	msg.addr = p.to;
	for (i = 0; i < 300; i++) {
		iov = (struct iovec){ out.mem + i * 1000, 1000 };
		ck_assert_int_eq(fi_sendmsg(p.a.ep, &msg, _i ? FI_MATCH_COMPLETE : 0), 0);
	}
	while ((ret = fi_write(p.a.ep, out.mem, 1000, desc, p.to, p.base, p.key, NULL)) ==
		       -FI_EAGAIN &&
	       turns--) {
		fi_cq_read(p.a.cq, NULL, 0);
		usleep(1000);
	}
	ck_assert_msg(!ret, "fi_write: %d for 3 s", (int)ret);
	close_ends();
}
END_TEST

static TCase *tcase_rings(void)
{
	TCase *tc = tcase_create("rings");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, two_endpoints_with_one_ring_each_send_to_each_other, 0, 2 * RIGS);
	tcase_add_loop_test(tc, two_senders_and_no_ring, 0, 2);
	tcase_add_loop_test(tc, one_ends_while_another_waits_for_its_ring, 0, WHATS);
	tcase_add_test(tc, all_has_come_when_there_is_no_pair_any_more);
	tcase_add_loop_test(tc, messages_that_wait_keep_rings_from_accesses, 0, 2);
	return tc;
}

UNIT_MAIN("rings", tcase_rings)

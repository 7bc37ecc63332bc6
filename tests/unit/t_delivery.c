/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that complete when the target has them (FI_DELIVERY_COMPLETE), on the fake fabric: what
 * says so, how soon, and what happens if the line or the target is lost before.
 */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "contract/budget.h"
#include "heads.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define LEN 1000u
#define N 20u

static struct node a, b;
static fi_addr_t to_b, to_a;
static uint8_t *out, *in;
static struct fid_mr *in_mr;

static atomic_bool keeps; /* the fabric keeps notes */
static atomic_uint notes, asked;

static bool is_note(const uint8_t *msg, size_t len)
{
	return mrf_frame_type(msg, len) == MRF_FRAME_NOTE;
}

static enum fake_fate look(uint8_t *msg, size_t *len, bool from_target)
{
	if (from_target && is_note(msg, *len)) {
		notes++;
		return atomic_load(&keeps) ? FAKE_KEEP : FAKE_DELIVER;
	}
	asked += !from_target && flags_of_message(msg, *len) & MRF_FRAME_ACK;
	return FAKE_DELIVER;
}

static void open_with(uint64_t op_flags)
{
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .op_flags = op_flags };

	node_open(&a, &opt);
	node_open(&b, &opt);
	to_b = node_insert(&a, &b);
	to_a = node_insert(&b, &a);
	out = pages(N * LEN);
	in = pages(N * LEN);
	fill(out, N * LEN, 9);
	in_mr = node_reg(&b, in, N * LEN, FI_RECV, 1);
	atomic_store(&keeps, false);
	notes = asked = 0;
	fake.on_send = look;
}

static void setup(void)
{
	fixture_setup();
	open_with(FI_DELIVERY_COMPLETE);
}

static void close_b(void)
{
	if (in_mr)
		must_close(&in_mr->fid);
	in_mr = NULL;
	node_close(&b);
}

static void teardown(void)
{
	node_close(&a);
	close_b();
	fixture_teardown();
}

static void send_at(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, out + i * LEN, LEN, NULL, to_b, out + i * LEN), 0);
}

static void recv_at(unsigned i)
{
	ck_assert_int_eq(
		fi_recv(b.ep, in + i * LEN, LEN, fi_mr_desc(in_mr), FI_ADDR_UNSPEC, in + i * LEN),
		0);
}

static void want_sent(unsigned i)
{
	want_ok(&a, out + i * LEN);
}

static void want_got(unsigned i)
{
	want_ok(&b, in + i * LEN);
	ck_assert_int_eq(memcmp(in + i * LEN, out + i * LEN, LEN), 0);
}

/* A line, over which nothing is under way. */
static void begin(void)
{
	recv_at(0);
	send_at(0);
	want_got(0);
	want_sent(0);
}

/* --- what says so --------------------------------------------------------------------- */

START_TEST(a_message_completes_when_the_target_says_so)
{
	begin();
	atomic_store(&keeps, true);
	recv_at(1);
	send_at(1);
	want_got(1);
	/* RC has acknowledged it by now. */
	want_none(&a);
	ck_assert_uint_eq(fake_queued(), 0);
	atomic_store(&keeps, false);
	fake_deliver();
	want_sent(1);
	ck_assert_uint_eq(asked, 2);
	want_idle(&a);
}
END_TEST

/* One after the other, each with a word of its own; or many at once. */
START_TEST(every_message_is_told)
{
	unsigned i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++) {
			recv_at(i);
			send_at(i);
			if (round % 2)
				continue;
			want_got(i);
			want_sent(i);
		}
		for (i = 0; round % 2 && i < N; i++)
			want_got(i);
		for (i = 0; round % 2 && i < N; i++)
			want_sent(i);
	}
	ck_assert_uint_eq(asked, 3 * N);
}
END_TEST

/* It is among the unexpected messages, where only the target's memory can lose it. */
START_TEST(a_message_that_nobody_receives_yet_is_delivered)
{
	begin();
	send_at(1);
	want_sent(1);
	recv_at(1);
	want_got(1);
}
END_TEST

START_TEST(calls_ask_for_it_by_themselves)
{
	struct iovec iov = { NULL, LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_msg_tagged tagged = { .msg_iov = &iov, .iov_count = 1, .tag = 7 };

	teardown();
	fixture_setup();
	open_with(0);
	iov.iov_base = msg.context = tagged.context = out;
	msg.addr = tagged.addr = to_b;
	begin();
	ck_assert_uint_eq(asked, 0);
	recv_at(0);
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
	want_sent(0);
	want_got(0);
	ck_assert_uint_eq(asked, 1);
	ck_assert_int_eq(fi_trecv(b.ep, in, LEN, fi_mr_desc(in_mr), FI_ADDR_UNSPEC, 7, 0, in), 0);
	ck_assert_int_eq(fi_tsendmsg(a.ep, &tagged, FI_DELIVERY_COMPLETE | FI_INJECT),
			 -FI_EMSGSIZE);
	iov.iov_len = 64;
	ck_assert_int_eq(fi_tsendmsg(a.ep, &tagged, FI_DELIVERY_COMPLETE | FI_INJECT), 0);
	want_sent(0);
	want_ok(&b, in);
	ck_assert_uint_eq(asked, 2);
}
END_TEST

/* What is injected is the target's before anybody could ask. */
START_TEST(an_injected_message_does_not_ask)
{
	begin();
	recv_at(1);
	ck_assert_int_eq(fi_inject(a.ep, out + LEN, 64, to_b), 0);
	want_ok(&b, in + LEN);
	want_idle(&a);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* Others have filled the memory for unexpected messages: what has a receive is delivered all the same. */
START_TEST(a_message_is_told_while_there_is_no_room_for_others)
{
	struct node c;
	fi_addr_t c_to;
	unsigned i;

	teardown();
	fixture_setup();
	fixture_unexpected_count("4");
	open_with(FI_DELIVERY_COMPLETE);
	node_open(&c, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED });
	c_to = node_insert(&c, &b);
	begin();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(fi_send(c.ep, out, LEN, NULL, c_to, out), 0);
		want_ok(&c, out);
	}
	node_heard(&b);
	for (i = 1; i < MRF_WINDOW_FIRST; i++) {
		uint8_t *buf = in + i * LEN;

		ck_assert_int_eq(
			fi_trecv(b.ep, buf, LEN, fi_mr_desc(in_mr), FI_ADDR_UNSPEC, 7, 0, buf), 0);
		ck_assert_int_eq(fi_tsend(a.ep, out + i * LEN, LEN, NULL, to_b, 7, out + i * LEN),
				 0);
		want_got(i);
		want_sent(i);
	}
	/* It may send no more than it might before, until there is room. */
	for (i = 0; i < N; i++)
		send_at(i);
	for (i = 0; i < 4 + N; i++) {
		recv_at(0);
		want_ok(&b, in);
	}
	for (i = 0; i < N; i++)
		want_sent(i);
	node_close(&c);
	fixture_unexpected_count(NULL);
}
END_TEST

/* --- how ------------------------------------------------------------------------------ */

static void back(void)
{
	ck_assert_int_eq(fi_recv(a.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_inject(b.ep, out, 8, to_a), 0);
}

static void want_back(void)
{
	bool sent = false, got = false;

	while (!sent || !got) {
		struct fi_cq_data_entry entry = want_ok(&a, NULL);

		got |= entry.op_context == in;
		sent |= entry.op_context != in;
	}
}

/* As a ping-pong: the answer says it. */
START_TEST(an_answer_tells_it)
{
	unsigned i;

	begin();
	back();
	want_ok(&a, in);
	notes = 0;
	for (i = 0; i < 50; i++) {
		recv_at(1);
		send_at(1);
		want_got(1);
		back();
		want_back();
	}
	/* On a busy machine, b's agent may look for messages before b answers. */
	ck_assert_uint_lt(notes, 25);
}
END_TEST

/* There is a line the other way, and no answer: a note says it when somebody polls again. */
START_TEST(without_an_answer_a_note_tells_it)
{
	unsigned i;

	begin();
	back();
	want_ok(&a, in);
	for (i = 1; i < N; i++) {
		recv_at(i);
		send_at(i);
		want_got(i);
		want_sent(i);
	}
}
END_TEST

/* --- what is lost --------------------------------------------------------------------- */

/* Messages 1 to n have come, and a has been told nothing of it. */
static void have(unsigned n)
{
	unsigned i;

	begin();
	atomic_store(&keeps, true);
	for (i = 1; i <= n; i++) {
		recv_at(i);
		send_at(i);
		want_got(i);
	}
	want_none(&a);
}

/* The next line's welcome says what has come. */
START_TEST(what_has_come_over_a_lost_line_completes)
{
	unsigned i, n = _i;

	have(n);
	fake_break_frame(1, 1, MRF_WC_OTHER, false);
	atomic_store(&keeps, false);
	recv_at(n + 1);
	send_at(n + 1);
	for (i = 1; i <= n + 1; i++)
		want_sent(i);
	want_got(n + 1);
	want_none(&b);
	want_idle(&a);
}
END_TEST

START_TEST(a_target_that_closes_tells)
{
	unsigned i;

	have(3);
	atomic_store(&keeps, false);
	close_b();
	for (i = 1; i <= 3; i++)
		want_sent(i);
	want_idle(&a);
}
END_TEST

START_TEST(a_target_that_is_killed_leaves_it_open)
{
	unsigned i;

	have(3);
	fake_kill(node_agent(&b)->cm);
	for (i = 1; i <= 3; i++)
		want_err(&a, out + i * LEN, FI_ECONNRESET, "may or may not have come");
	want_idle(&a);
}
END_TEST

START_TEST(the_sender_may_close_before)
{
	have(3);
	node_close(&a);
	ck_assert_uint_gt(fake_live(), 0);
}
END_TEST

static unsigned peers(void)
{
	struct mrf_ep *ep = node_ep(&a);
	unsigned n = 0;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->all_peers)
		n++;
	mrf_lock_release(&ep->lock);
	return n;
}

/* Its line is closed when all has been told, and not before. */
START_TEST(a_target_may_be_removed_before)
{
	have(2);
	ck_assert_int_eq(fi_av_remove(a.av, &to_b, 1, 0), 0);
	want_none(&a);
	atomic_store(&keeps, false);
	fake_deliver();
	want_sent(1);
	want_sent(2);
	want_soon(!peers());
}
END_TEST

static TCase *tcase_delivery(void)
{
	TCase *tc = tcase_create("delivery");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_message_completes_when_the_target_says_so);
	tcase_add_test(tc, every_message_is_told);
	tcase_add_test(tc, a_message_that_nobody_receives_yet_is_delivered);
	tcase_add_test(tc, a_message_is_told_while_there_is_no_room_for_others);
	tcase_add_test(tc, calls_ask_for_it_by_themselves);
	tcase_add_test(tc, an_injected_message_does_not_ask);
	tcase_add_test(tc, an_answer_tells_it);
	tcase_add_test(tc, without_an_answer_a_note_tells_it);
	tcase_add_loop_test(tc, what_has_come_over_a_lost_line_completes, 1, 4);
	tcase_add_test(tc, a_target_that_closes_tells);
	tcase_add_test(tc, a_target_that_is_killed_leaves_it_open);
	tcase_add_test(tc, the_sender_may_close_before);
	tcase_add_test(tc, a_target_may_be_removed_before);
	return tc;
}

UNIT_MAIN("delivery of messages", tcase_delivery)

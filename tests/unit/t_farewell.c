/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last messages, and fi_close of their receiver, on the fake fabric: the data have come, and the
 * acknowledgements never do.
 */
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include "base/param.h"
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define LEN 8u

static struct node a, b;
static fi_addr_t to;
static uint8_t *out, *in;
static struct mrf_frame_note last; /* that the target has sent */

/* For fake.on_send. */
static enum fake_fate see_note(uint8_t *msg, size_t *len, bool from_target)
{
	if (from_target)
		mrf_frame_note_decode(msg, *len, &last);
	return FAKE_DELIVER;
}

static void recv_one(unsigned i)
{
	ck_assert_int_eq(fi_recv(b.ep, in + i * LEN, LEN, NULL, FI_ADDR_UNSPEC, in + i * LEN), 0);
}

static void send_one(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, out + i * LEN, LEN, NULL, to, out + i * LEN), 0);
}

/* There is a line, over which message 0 has come; the next ones are not acknowledged. */
static void begin(void)
{
	node_open(&a, NULL);
	node_open(&b, NULL);
	to = node_insert(&a, &b);
	out = pages(PAGE);
	in = pages(PAGE);
	recv_one(0);
	send_one(0);
	want_ok(&b, in);
	want_ok(&a, out);
	fake.on_send = see_note;
	fake_hold_frames(true);
}

/* So many more have come, and b has had them. */
static void have(unsigned n)
{
	unsigned i;

	for (i = 1; i <= n; i++) {
		recv_one(i);
		send_one(i);
	}
	fake_run_unacknowledged();
	for (i = 1; i <= n; i++)
		want_ok(&b, in + i * LEN);
	ck_assert_uint_eq(fake_queued(), n);
}

START_TEST(what_the_receiver_had_before_it_closed_was_sent)
{
	unsigned i, n = _i;

	begin();
	have(n);
	node_close(&b);
	ck_assert_uint_eq(last.taken, n + 1);
	ck_assert_uint_eq(last.window, 0);
	for (i = 1; i <= n; i++)
		want_ok(&a, out + i * LEN);
	want_none(&a);
	want_idle(&a);
	node_close(&a);
}
END_TEST

static void *sleeper(void *arg)
{
	struct fi_cq_data_entry entry = { 0 };

	ck_assert_int_eq(fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS), 1);
	ck_assert_ptr_eq(entry.op_context, arg);
	return NULL;
}

START_TEST(a_sender_that_sleeps_is_told)
{
	pthread_t thread;

	begin();
	have(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, sleeper, out + LEN), 0);
	want_soon(mrf_wait_asleep(&node_ep(&a)->link_tx));
	node_close(&b);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	node_close(&a);
}
END_TEST

/* Messages that no receive took have come as well; of those behind them nothing is known. */
START_TEST(what_had_not_come_before_the_receiver_closed_fails)
{
	unsigned i;

	begin();
	have(1);
	send_one(2);
	fake_run_unacknowledged();
	send_one(3);
	send_one(4);
	node_close(&b);
	ck_assert_uint_eq(last.taken, 3);
	want_ok(&a, out + LEN);
	want_ok(&a, out + 2 * LEN);
	for (i = 3; i <= 4; i++)
		want_err(&a, out + i * LEN, FI_ECONNRESET, "may or may not have come");
	want_idle(&a);
	node_close(&a);
}
END_TEST

START_TEST(a_receiver_that_is_killed_says_nothing)
{
	begin();
	have(1);
	fake_kill(node_agent(&b)->cm);
	want_err(&a, out + LEN, FI_ECONNRESET, "may or may not have come");
	node_close(&a);
	node_close(&b);
}
END_TEST

/* What the next endpoint there receives has nothing to do with it. */
START_TEST(what_waits_goes_to_the_receiver_that_comes_next)
{
	struct node_opt opt = { 0 };
	unsigned i;

	begin();
	opt.port = node_port(&b);
	have(MRF_WINDOW_FIRST - 1);
	fake_stop(node_agent(&a)->cm, NULL, true);
	node_close(&b);
	/* The window is closed now. */
	ck_assert_int_eq(fi_cq_read(a.cq, NULL, 0), -FI_EAGAIN);
	send_one(MRF_WINDOW_FIRST);
	ck_assert_uint_eq(fake_queued(), MRF_WINDOW_FIRST - 1);
	node_open(&b, &opt);
	fake_hold_frames(false);
	fake_stop(node_agent(&a)->cm, NULL, false);
	for (i = 1; i <= MRF_WINDOW_FIRST; i++)
		want_ok(&a, out + i * LEN);
	recv_one(0);
	want_ok(&b, in);
	want_none(&b);
	node_close(&a);
	node_close(&b);
}
END_TEST

/* The note waits for its acknowledgement as messages do. */
START_TEST(a_note_that_does_not_arrive_is_not_waited_for_long)
{
	int64_t begun;

	begin();
	fake_hold_frames(false);
	fake_hold_all(true);
	begun = mrf_now_ms();
	node_close(&b);
	ck_assert_int_ge(mrf_now_ms() - begun, MRF_FAREWELL_MS - 1);
	ck_assert_int_lt(mrf_now_ms() - begun, 1500);
	fake_hold_all(false);
	node_close(&a);
}
END_TEST

#define LINGER_MS 100

/* A peer that never answers takes none of the time for what others are told. */
START_TEST(lingering_for_one_peer_leaves_time_for_the_others)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(9) };
	fi_addr_t far;
	int64_t begun;

	ck_assert_int_eq(setenv("FI_MRFAB_LINGER", "100", 1), 0);
	mrf_env_reload();
	begin();
	nobody.sin_addr.s_addr = htonl(0x0a630163);
	ck_assert_int_eq(fi_av_insert(b.av, &nobody, 1, &far, 0, NULL), 1);
	fake_unresolved(UINT_MAX);
	ck_assert_int_eq(fi_send(b.ep, out, LEN, NULL, far, NULL), 0);
	fake_hold_frames(false);
	fake_hold_all(true);
	begun = mrf_now_ms();
	node_close(&b);
	ck_assert_int_ge(mrf_now_ms() - begun, LINGER_MS + MRF_FAREWELL_MS - 2);
	fake_hold_all(false);
	fake_unresolved(0);
	node_close(&a);
	unsetenv("FI_MRFAB_LINGER");
}
END_TEST

static void *closer(void *arg)
{
	node_close(arg);
	return NULL;
}

/* What the one looks at while it lingers, and the other changes, is for TSan to see. */
START_TEST(a_line_may_end_while_its_target_says_farewell)
{
	pthread_t thread;

	begin();
	fake_hold_frames(false);
	fake_hold_all(true);
	ck_assert_int_eq(pthread_create(&thread, NULL, closer, &b), 0);
	node_close(&a);
	fake_hold_all(false);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static TCase *tcase_farewell(void)
{
	TCase *tc = tcase_create("farewell");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_the_receiver_had_before_it_closed_was_sent, 1,
			    MRF_WINDOW_FIRST);
	tcase_add_test(tc, a_sender_that_sleeps_is_told);
	tcase_add_test(tc, what_had_not_come_before_the_receiver_closed_fails);
	tcase_add_test(tc, a_receiver_that_is_killed_says_nothing);
	tcase_add_test(tc, what_waits_goes_to_the_receiver_that_comes_next);
	tcase_add_test(tc, a_note_that_does_not_arrive_is_not_waited_for_long);
	tcase_add_test(tc, a_line_may_end_while_its_target_says_farewell);
	tcase_add_test(tc, lingering_for_one_peer_leaves_time_for_the_others);
	return tc;
}

UNIT_MAIN("farewell", tcase_farewell)

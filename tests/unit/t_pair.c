/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs on the fake fabric: the cases that a real device answers alike (tests/func/pairs.h), and
 * what no device does on order.
 */
#include "../fake/fake_fabric.h"
#include "../func/pairs.h"
#include "unit.h"

static void setup(void)
{
	fake_reset();
}

static void must(bool ok)
{
	ck_assert_msg(ok, "%s", why);
}

static void must_open(void)
{
	must(ends_open());
	ck_assert_uint_eq(fake_live_of(FAKE_VPAIR_OPEN), ENDS);
}

static void must_join(void)
{
	must_open();
	must(pairs_open());
}

static void must_close(void)
{
	pairs_close();
	ck_assert_uint_eq(fake_live(), 0);
	ck_assert_uint_eq(fake.overflows, 0);
}

START_TEST(pair_keeps_what_its_header_promises)
{
	must_join();
	ck_assert_msg(pair_cases[_i].run(), "%s: %s", pair_cases[_i].name, why);
	must_close();
}
END_TEST

START_TEST(pair_end_keeps_what_its_header_promises)
{
	must_open();
	ck_assert_msg(end_cases[_i].run(), "%s: %s", end_cases[_i].name, why);
	must_close();
}
END_TEST

/* --- failures -------------------------------------------------------------------------------- */

static bool use(void)
{
	return ends_open() && pairs_open() && goes(0, 0, 2, 3, 9000) && goes(1, 1, 1, 1, 8);
}

static const char *const calls[] = { "mrf_vpair_open", "mrf_vpair_connect", "mrf_vpair_send",
				     "mrf_vpair_recv" };

START_TEST(pair_each_call_may_fail_and_leaves_nothing)
{
	unsigned met[MRF_ARRAY_SIZE(calls)] = { 0 }, nth;

	for (nth = 1;; nth++) {
		why[0] = '\0';
		fake_fail_any(nth, FI_ENOSPC);
		use();
		if (!fake_fail_none())
			break;
		for (size_t i = 0; i < MRF_ARRAY_SIZE(calls); i++)
			met[i] += strstr(why, calls[i]) != NULL;
		must_close();
	}
	must_close();
	for (size_t i = 0; i < MRF_ARRAY_SIZE(calls); i++)
		ck_assert_msg(met[i] == 2, "%s failed %u times", calls[i], met[i]);
}
END_TEST

/* A call that fails does nothing. */
START_TEST(pair_error_is_that_of_the_device)
{
	struct mrf_sge sge = { (uintptr_t)bulk.in[1], 8, 0 };

	must_open();
	fake_fail(FAKE_VPAIR_CONNECT, 1, FI_ENOMEM);
	ck_assert_int_eq(mrf_vpair_connect(pairs.pair[0], conn_of(0), &pairs.name[1]), -FI_ENOMEM);
	must(pairs_open());
	fake_fail(FAKE_VPAIR_RECV, 1, FI_EIO);
	ck_assert_int_eq(mrf_vpair_recv(pairs.pair[1], 0, &sge, 1), -FI_EIO);
	fake_fail(FAKE_VPAIR_SEND, 1, FI_EIO);
	ck_assert_int_eq(mrf_vpair_send(pairs.pair[0], 0, &sge, 1, false), -FI_EIO);
	must(nothing_more_comes() && goes(0, 3, 1, 1, 8));
	must_close();
}
END_TEST

START_TEST(pair_takes_no_more_pieces_than_it_was_made_for)
{
	struct mrf_sge sge[PIECES + 1] = { { 0, 0, 0 } };
	struct mrf_vpair_attr attr;
	struct mrf_vpair *pair = NULL;

	must_join();
	ck_assert_int_eq(mrf_vpair_recv(pairs.pair[1], 0, sge, PIECES + 1), -FI_EINVAL);
	ck_assert_int_eq(mrf_vpair_send(pairs.pair[1], 0, sge, PIECES + 1, false), -FI_EINVAL);
	attr = attr_of(0);
	attr.recv_sge = 33;
	ck_assert_int_eq(mrf_vpair_open(conn_of(0), &attr, &pair), -FI_EINVAL);
	ck_assert_ptr_null(pair);
	must_close();
}
END_TEST

/* Of the process: what was posted before goes on, and what is posted later completes never. */
START_TEST(pair_of_changed_credentials_is_denied)
{
	struct mrf_sge sge = { (uintptr_t)bulk.in[1], 8, pairs.to.lkey };
	struct mrf_vpair_attr attr;
	struct mrf_vpair *pair = NULL;

	must_join();
	attr = attr_of(0);
	must(post_send(0, 0, 1, 8));
	fake_deny(lines.cm);
	ck_assert_int_eq(mrf_vpair_open(conn_of(0), &attr, &pair), -FI_EACCES);
	ck_assert_int_eq(mrf_vpair_connect(pairs.pair[0], conn_of(0), &pairs.name[1]), -FI_EACCES);
	ck_assert_int_eq(mrf_vpair_send(pairs.pair[1], 0, &sge, 1, false), -FI_EACCES);
	must(post_room(1, 0, 1, 8) && bulk_comes(1, 0, 1, 8, 8) && send_ends(0, 0, MRF_WC_OK));
	ck_assert_uint_eq(fake.denied, 1);
	must_close();
}
END_TEST

/* --- what is ordered, and seen --------------------------------------------------------------------------- */

START_TEST(pair_sends_are_held)
{
	must_join();
	must(post_room(1, 0, 1, 8) && post_room(1, 1, 1, 8));
	fake_hold_pairs(true);
	must(post_send(0, 0, 1, 8) && nothing_more_comes());
	ck_assert_uint_eq(fake_queued(), 1);
	/* Frames go on. */
	must(post_slot(0, SLOT) && send_message(0, 0, 100) && message_comes(0, 0, 0, 100));
	fake_hold_pairs(false);
	must(bulk_comes(1, 0, 1, 8, 8) && send_ends(0, 0, MRF_WC_OK));
	/* Accesses alone; then messages, too. */
	fake_hold(true);
	must(post_send(0, 1, 1, 8) && bulk_comes(1, 1, 1, 8, 8) && send_ends(0, 1, MRF_WC_OK));
	fake_hold_all(true);
	must(post_room(1, 2, 1, 8) && post_send(0, 2, 1, 8) && nothing_more_comes());
	fake_hold_all(false);
	must(bulk_comes(1, 2, 1, 8, 8) && send_ends(0, 2, MRF_WC_OK));
	must_close();
}
END_TEST

static enum fake_fate drop(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	(void)from_target;
	return FAKE_DROP;
}

START_TEST(pair_sends_are_no_messages_of_connections)
{
	unsigned asks;

	must_join();
	asks = fake_asks();
	fake.on_send = drop;
	must(goes(0, 0, 2, 2, 9000) && goes(1, 1, 2, 2, 9000));
	ck_assert_uint_eq(fake_asks(), asks);
	must_close();
}
END_TEST

START_TEST(pair_sends_come_and_are_not_acknowledged)
{
	must_join();
	must(post_room(1, 0, 1, 8));
	fake_hold_pairs(true);
	must(post_send(0, 0, 1, 8));
	fake_run_unacknowledged();
	must(bulk_comes(1, 0, 1, 8, 8) && nothing_more_comes());
	fake_hold_pairs(false);
	must(send_ends(0, 0, MRF_WC_OK) && nothing_more_comes());
	must_close();
}
END_TEST

static const struct {
	enum mrf_wc_status status;
	bool ran;
} breaks[] = {
	{ MRF_WC_TIMEOUT, false }, { MRF_WC_TIMEOUT, true },  { MRF_WC_REFUSED, false },
	{ MRF_WC_LOCAL, false },   { MRF_WC_FLUSHED, false }, { MRF_WC_OTHER, true },
};

/* The second SEND. Frames do not count, and their breaking does not count SENDs. */
START_TEST(pair_send_breaks)
{
	bool ran = breaks[_i].ran;

	must_join();
	fake_break_pair(2, 1, breaks[_i].status, ran);
	fake_break_frame(2, 1, MRF_WC_OTHER, false);
	fake_break_send(1);
	must(post_slot(0, SLOT) && goes(0, 0, 1, 1, 9000) && post_send(0, 1, 1, 9000) &&
	     post_send(0, 2, 1, 8) && nothing_more_comes() && post_room(1, 1, 1, 9000) &&
	     send_ends(0, 1, breaks[_i].status) && send_ends(0, 2, MRF_WC_FLUSHED));
	if (ran)
		must(bulk_comes(1, 1, 1, 9000, 9000));
	/* This end is told only if it has refused. */
	else if (breaks[_i].status == MRF_WC_REFUSED)
		must(room_ends(1, 1, MRF_WC_FLUSHED));
	must(nothing_more_comes() && send_message(1, 1, 16) && message_comes(1, 0, 1, 16));
	must_close();
}
END_TEST

/* Nothing that was on the way when an end broke is answered. */
START_TEST(pair_that_broke_lets_the_other_end_time_out)
{
	must_join();
	must(post_room(1, 0, 1, 8) && post_send(1, 1, 1, 8) && nothing_more_comes());
	fake_break_pair(1, 1, MRF_WC_LOCAL, false);
	must(post_send(0, 0, 1, 8) && send_ends(0, 0, MRF_WC_LOCAL) &&
	     send_ends(1, 1, MRF_WC_TIMEOUT) && room_ends(1, 0, MRF_WC_FLUSHED));
	must_close();
}
END_TEST

/* As on 6.12: what is ahead of a bad buffer arrives, and all of it is flushed. */
START_TEST(pair_of_later_kernels_flushes_what_came)
{
	must_join();
	fake.flush_local = true;
	fake_hold_pairs(true);
	must(post_room(1, 0, 1, 8) && post_room(1, 1, 1, 8) && post_send(1, 3, 1, 8) &&
	     post_inline(0, 0, 8) && post_send(0, 1, 1, 8) && post_inline(0, 2, 8));
	ck_assert_int_eq(mrf_vmr_dereg(&pairs.from), 0);
	fake_hold_pairs(false);
	must(bulk_comes(1, 0, 1, 8, 8) && send_ends(0, 0, MRF_WC_FLUSHED) &&
	     send_ends(0, 1, MRF_WC_FLUSHED) && send_ends(0, 2, MRF_WC_FLUSHED) &&
	     send_ends(1, 3, MRF_WC_TIMEOUT) && room_ends(1, 1, MRF_WC_FLUSHED) &&
	     nothing_more_comes());
	must_close();
}
END_TEST

/* They are gone without a word, as is all that they had; the other end hears nothing of it. */
START_TEST(pair_of_a_killed_process_answers_nothing)
{
	must_join();
	must(post_room(1, 0, 1, 8) && post_send(1, 1, 1, 8));
	fake_kill(lines.cm);
	must(nothing_more_comes());
	must_close();
}
END_TEST

/* One connects to what is closed already, and the other waits for it. */
START_TEST(pair_end_that_never_connects_is_no_end)
{
	must_open();
	must(connect_end(0) && post_send(0, 0, 1, 8) && nothing_more_comes());
	close_end(1);
	must(send_ends(0, 0, MRF_WC_TIMEOUT));
	must_close();
	must_open();
	close_end(1);
	must(connect_end(0) && post_send(0, 0, 1, 8) && send_ends(0, 0, MRF_WC_TIMEOUT));
	must_close();
}
END_TEST

static TCase *tcase_pair(void)
{
	TCase *tc = tcase_create("pair");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, pair_keeps_what_its_header_promises, 0,
			    (int)MRF_ARRAY_SIZE(pair_cases));
	tcase_add_loop_test(tc, pair_end_keeps_what_its_header_promises, 0,
			    (int)MRF_ARRAY_SIZE(end_cases));
	tcase_add_test(tc, pair_each_call_may_fail_and_leaves_nothing);
	tcase_add_test(tc, pair_error_is_that_of_the_device);
	tcase_add_test(tc, pair_takes_no_more_pieces_than_it_was_made_for);
	tcase_add_test(tc, pair_of_changed_credentials_is_denied);
	tcase_add_test(tc, pair_sends_are_held);
	tcase_add_test(tc, pair_sends_are_no_messages_of_connections);
	tcase_add_test(tc, pair_sends_come_and_are_not_acknowledged);
	tcase_add_loop_test(tc, pair_send_breaks, 0, (int)MRF_ARRAY_SIZE(breaks));
	tcase_add_test(tc, pair_that_broke_lets_the_other_end_time_out);
	tcase_add_test(tc, pair_of_later_kernels_flushes_what_came);
	tcase_add_test(tc, pair_of_a_killed_process_answers_nothing);
	tcase_add_test(tc, pair_end_that_never_connects_is_no_end);
	return tc;
}

UNIT_MAIN("pair", tcase_pair)

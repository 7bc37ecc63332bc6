/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receives on the fake fabric: the cases that a real device answers alike
 * (tests/func/lines.h), and what no device does on order.
 */
#include "../fake/fake_fabric.h"
#include "../func/lines.h"
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
	must(lines_open());
	ck_assert_uint_eq(fake_live_of(FAKE_VSRQ_OPEN), 1);
	ck_assert_uint_eq(fake_live_of(FAKE_CREATE_QP), 2 * LINES);
}

static void must_close(void)
{
	lines_close();
	ck_assert_uint_eq(fake_live(), 0);
	ck_assert_uint_eq(fake.overflows, 0);
}

START_TEST(srq_keeps_what_its_header_promises)
{
	must_open();
	ck_assert_msg(line_cases[_i].run(), "%s: %s", line_cases[_i].name, why);
	must_close();
}
END_TEST

/* --- failures -------------------------------------------------------------------------------- */

static bool use(void)
{
	return lines_open() && post_slot(0, SLOT) && send_message(0, 0, 5000) &&
	       message_comes(0, 0, 0, 5000) && sender_hears(0, 0, MRF_WC_OK);
}

START_TEST(srq_each_call_may_fail_and_leaves_nothing)
{
	bool met_open = false, met_post = false;
	unsigned nth, open, post;

	for (nth = 1;; nth++) {
		fake_fail_any(nth, FI_ENOSPC);
		open = fake_calls(FAKE_VSRQ_OPEN);
		post = fake_calls(FAKE_VSRQ_POST);
		use();
		if (!fake_fail_none())
			break;
		met_open |= strstr(why, "mrf_vsrq_open") && fake_calls(FAKE_VSRQ_OPEN) > open;
		met_post |= strstr(why, "mrf_vsrq_post") && fake_calls(FAKE_VSRQ_POST) > post;
		must_close();
	}
	must_close();
	ck_assert(met_open && met_post);
	ck_assert_uint_gt(nth, 20);
}
END_TEST

START_TEST(srq_error_is_that_of_the_device)
{
	struct mrf_sge sge = { (uintptr_t)memory.slots[0], SLOT, 0 };
	struct mrf_vsrq *srq = NULL;

	must_open();
	fake_fail(FAKE_VSRQ_OPEN, 1, FI_ENOMEM);
	ck_assert_int_eq(mrf_vsrq_open(lines.pd, 4, &srq), -FI_ENOMEM);
	ck_assert_ptr_null(srq);
	fake_fail(FAKE_VSRQ_POST, 1, FI_EIO);
	ck_assert_int_eq(mrf_vsrq_post(lines.srq, 0, &sge), -FI_EIO);
	/* Nothing was posted by it. */
	must(send_message(0, 0, 8) && nothing_comes(lines.received) && post_slot(3, SLOT) &&
	     message_comes(0, 3, 0, 8));
	must_close();
}
END_TEST

/* --- messages that break off ----------------------------------------------------------------- */

static void break_off_first(void)
{
	must_open();
	must(post_slot(0, SLOT) && post_slot(1, SLOT));
	fake_break_send(1);
	must(send_message(0, 0, 5000) && sender_hears(0, 0, MRF_WC_LOCAL) &&
	     nothing_comes(lines.received));
	/* It is used up, and the other line goes on with the next one. */
	must(send_message(1, 0, 16) && message_comes(1, 1, 0, 16));
}

START_TEST(srq_gives_a_receive_that_was_begun_back_with_its_queue_pair_in_error)
{
	break_off_first();
	mrf_vconn_disconnect(lines.to[0]);
	must(receiver_hears(0, 0, MRF_WC_FLUSHED) && nothing_comes(lines.received));
	must_close();
}
END_TEST

START_TEST(srq_loses_a_receive_that_was_begun_with_its_queue_pair)
{
	break_off_first();
	mrf_vconn_close(lines.to[0]);
	lines.to[0] = NULL;
	must(nothing_comes(lines.received));
	must_close();
}
END_TEST

START_TEST(srq_of_later_kernels_loses_a_receive_that_was_begun)
{
	fake.loses_recvs = true;
	break_off_first();
	mrf_vconn_disconnect(lines.to[0]);
	must(nothing_comes(lines.received));
	must_close();
}
END_TEST

START_TEST(srq_message_from_memory_that_is_gone_takes_no_receive)
{
	must_open();
	must(post_slot(0, SLOT));
	ck_assert_int_eq(mrf_vmr_dereg(&lines.mr), 0);
	must(send_message(0, 0, 5000) && sender_hears(0, 0, MRF_WC_LOCAL) &&
	     nothing_comes(lines.received));
	must_close();
}
END_TEST

static TCase *tcase_srq(void)
{
	TCase *tc = tcase_create("srq");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, srq_keeps_what_its_header_promises, 0,
			    (int)MRF_ARRAY_SIZE(line_cases));
	tcase_add_test(tc, srq_each_call_may_fail_and_leaves_nothing);
	tcase_add_test(tc, srq_error_is_that_of_the_device);
	tcase_add_test(tc, srq_gives_a_receive_that_was_begun_back_with_its_queue_pair_in_error);
	tcase_add_test(tc, srq_loses_a_receive_that_was_begun_with_its_queue_pair);
	tcase_add_test(tc, srq_of_later_kernels_loses_a_receive_that_was_begun);
	tcase_add_test(tc, srq_message_from_memory_that_is_gone_takes_no_receive);
	return tc;
}

UNIT_MAIN("srq", tcase_srq)

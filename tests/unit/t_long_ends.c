/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages one end of which goes: endpoints, regions and addresses that are closed or removed, and
 * what is canceled, before the offer has matched, and while its bytes are on their way.
 */
#include <string.h>
#include "contract/budget.h"
#include "two_ends.h"

#define LEN (2 * MRF_GRANT_BYTES)
#define MSGS 3u

static void nodes_open(int mr_mode)
{
	ends_open(&(struct node_opt){ .mr_mode = mr_mode }, MSGS * LEN);
}

static void send_one(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, out + i * LEN, LEN, desc_of(out_mr), to, out + i * LEN), 0);
}

static void recv_one(unsigned i)
{
	ck_assert_int_eq(
		fi_recv(b.ep, in + i * LEN, LEN, desc_of(in_mr), FI_ADDR_UNSPEC, in + i * LEN), 0);
}

/* The receive and the message need not have the same number. */
static void want_got(unsigned i, unsigned number)
{
	ck_assert_uint_eq(want_ok(&b, in + i * LEN).len, LEN);
	ck_assert(!memcmp(in + i * LEN, out + number * LEN, LEN));
}

static void want_sent(unsigned i)
{
	want_ok(&a, out + i * LEN);
}

/* Message 0 is offered, and no receive is posted. */
static void offer_one(void)
{
	send_one(0);
	want_soon(offers() == 1);
}

/* Its bytes are asked for, and do not come; a does not read completions. */
static void begin_one(void)
{
	fake_hold_pairs(true);
	recv_one(0);
	send_one(0);
	want_soon((fi_cq_read(b.cq, NULL, 0), fake_queued() >= 2));
}

/* There is a line that works. */
static void want_works(void)
{
	recv_one(2);
	send_one(2);
	want_got(2, 2);
	want_sent(2);
	want_none(&a);
	want_none(&b);
	ck_assert_uint_eq(offers(), 0);
}

/* --- the sender goes ---------------------------------------------------------------------- */

/* A receive that is posted before that is known takes it, and ends with it. */
START_TEST(an_offer_goes_with_its_sender)
{
	fixture_impatient();
	nodes_open(0);
	offer_one();
	a_close();
	want_soon(!offers());
	recv_one(0);
	want_none(&b);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in), 0);
	want_err(&b, in, FI_ECANCELED, NULL);
	b_close();
}
END_TEST

START_TEST(a_receive_fails_when_its_sender_has_gone)
{
	fixture_impatient();
	nodes_open(modes[_i]);
	begin_one();
	a_close();
	fake_hold_pairs(false);
	ck_assert_int_eq(want_err(&b, in, FI_ECONNRESET, "has gone"), 4337);
	ck_assert_uint_eq(offers(), 0);
	want_none(&b);
	b_close();
}
END_TEST

/* With an offer that waits, and in the middle of one. */
START_TEST(both_go_at_any_time)
{
	nodes_open(modes[_i / 4]);
	if (_i & 1)
		offer_one();
	else
		begin_one();
	if (_i & 2) {
		b_close();
		a_close();
	} else {
		a_close();
		b_close();
	}
	fake_hold_pairs(false);
}
END_TEST

/* --- the receiver goes -------------------------------------------------------------------- */

static void want_refused(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e = { 0 };

	ck_assert_int_eq(fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
	ck_assert_ptr_eq(e.op_context, out);
	ck_assert_msg(e.err == FI_ECONNREFUSED || e.err == FI_ECONNRESET, "%d: %s", e.err,
		      (char *)e.err_data);
}

START_TEST(a_send_fails_when_its_receiver_has_gone)
{
	nodes_open(modes[_i / 2]);
	if (_i % 2)
		offer_one();
	else
		begin_one();
	b_close();
	fake_hold_pairs(false);
	want_refused();
	want_none(&a);
	want_idle(&a);
	a_close();
}
END_TEST

/* What waits is for the endpoint that has gone; what comes after it is for the next. */
START_TEST(a_receiver_that_comes_again_knows_nothing_of_it)
{
	struct node_opt opt = { .mr_mode = modes[_i / 2] };

	nodes_open(modes[_i / 2]);
	opt.port = node_port(&b);
	if (_i % 2)
		offer_one();
	else
		begin_one();
	fake_stop(node_agent(&a)->cm, NULL, true);
	b_close();
	node_open(&b, &opt);
	if (opt.mr_mode & FI_MR_LOCAL)
		in_mr = node_reg(&b, in, MSGS * LEN, FI_RECV, 2);
	fake_hold_pairs(false);
	fake_stop(node_agent(&a)->cm, NULL, false);
	want_refused();
	want_works();
	a_close();
	b_close();
}
END_TEST

/* --- regions ------------------------------------------------------------------------------ */

START_TEST(a_send_whose_region_is_closed_fails_alone)
{
	nodes_open(FI_MR_LOCAL | FI_MR_ALLOCATED);
	if (_i)
		offer_one();
	else
		begin_one();
	mr_close(&out_mr);
	fake_hold_pairs(false);
	if (_i)
		recv_one(0);
	want_err(&a, out, FI_EFAULT, "region was closed");
	out_mr = node_reg(&a, out, MSGS * LEN, FI_SEND, 1);
	/* The receiver is told although nothing else is sent there. */
	want_err(&b, in, FI_ECANCELED, "given the message up");
	send_one(1);
	recv_one(1);
	want_got(1, 1);
	want_sent(1);
	want_works();
	a_close();
	b_close();
}
END_TEST

START_TEST(a_receive_whose_region_is_closed_fails_alone)
{
	nodes_open(FI_MR_LOCAL | FI_MR_ALLOCATED);
	if (_i)
		recv_one(0);
	else
		begin_one();
	mr_close(&in_mr);
	if (_i)
		send_one(0);
	fake_hold_pairs(false);
	want_err(&b, in, FI_ECANCELED, "region of the receive");
	want_sent(0);
	in_mr = node_reg(&b, in, MSGS * LEN, FI_RECV, 2);
	want_works();
	a_close();
	b_close();
}
END_TEST

/* --- fi_cancel ---------------------------------------------------------------------------- */

START_TEST(a_receive_that_has_met_a_message_is_not_canceled)
{
	nodes_open(modes[_i]);
	begin_one();
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in), -FI_ENOENT);
	fake_hold_pairs(false);
	want_got(0, 0);
	want_sent(0);
	want_works();
	a_close();
	b_close();
}
END_TEST

START_TEST(a_send_that_is_offered_is_not_canceled)
{
	nodes_open(modes[_i / 2]);
	if (_i % 2)
		offer_one();
	else
		begin_one();
	ck_assert_int_eq(fi_cancel(&a.ep->fid, out), -FI_ENOENT);
	fake_hold_pairs(false);
	if (_i % 2)
		recv_one(0);
	want_got(0, 0);
	want_sent(0);
	want_works();
	a_close();
	b_close();
}
END_TEST

/* It is behind what fills the window. */
START_TEST(a_send_that_is_not_offered_is_canceled)
{
	unsigned i;

	nodes_open(0);
	fake_hold_frames(true);
	for (i = 0; i < MRF_WINDOW_FIRST + 1; i++)
		ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, to, NULL), 0);
	send_one(0);
	ck_assert_int_eq(fi_cancel(&a.ep->fid, out), 0);
	want_err(&a, out, FI_ECANCELED, NULL);
	fake_hold_frames(false);
	for (i = 0; i < MRF_WINDOW_FIRST + 1; i++) {
		ck_assert_int_eq(fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
		want_ok(&b, NULL);
		want_ok(&a, NULL);
	}
	want_works();
	a_close();
	b_close();
}
END_TEST

/* --- addresses ---------------------------------------------------------------------------- */

START_TEST(an_address_is_removed_and_its_message_arrives)
{
	nodes_open(modes[_i / 2]);
	if (_i % 2)
		offer_one();
	else
		begin_one();
	ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	fake_hold_pairs(false);
	if (_i % 2)
		recv_one(0);
	want_got(0, 0);
	want_sent(0);
	to = node_insert(&a, &b);
	want_works();
	a_close();
	b_close();
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	return tc;
}

static TCase *tcase_senders(void)
{
	TCase *tc = tcase_new("senders");

	tcase_add_test(tc, an_offer_goes_with_its_sender);
	tcase_add_loop_test(tc, a_receive_fails_when_its_sender_has_gone, 0, MODES);
	tcase_add_loop_test(tc, both_go_at_any_time, 0, 4 * MODES);
	return tc;
}

static TCase *tcase_receivers(void)
{
	TCase *tc = tcase_new("receivers");

	tcase_add_loop_test(tc, a_send_fails_when_its_receiver_has_gone, 0, 2 * MODES);
	tcase_add_loop_test(tc, a_receiver_that_comes_again_knows_nothing_of_it, 0, 2 * MODES);
	return tc;
}

static TCase *tcase_regions(void)
{
	TCase *tc = tcase_new("regions");

	tcase_add_loop_test(tc, a_send_whose_region_is_closed_fails_alone, 0, 2);
	tcase_add_loop_test(tc, a_receive_whose_region_is_closed_fails_alone, 0, 2);
	return tc;
}

static TCase *tcase_cancel(void)
{
	TCase *tc = tcase_new("cancel");

	tcase_add_loop_test(tc, a_receive_that_has_met_a_message_is_not_canceled, 0, MODES);
	tcase_add_loop_test(tc, a_send_that_is_offered_is_not_canceled, 0, 2 * MODES);
	tcase_add_test(tc, a_send_that_is_not_offered_is_canceled);
	tcase_add_loop_test(tc, an_address_is_removed_and_its_message_arrives, 0, 2 * MODES);
	return tc;
}

UNIT_MAIN("ends of long messages", tcase_senders, tcase_receivers, tcase_regions, tcase_cancel)

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages whose line breaks, at each step of them: they arrive once and whole, and both ends
 * complete with success.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "base/param.h"
#include "contract/budget.h"
#include "two_ends.h"
#include "ep/msg/grant.h"
#include "proto/frame.h"

#define LEN (3 * MRF_GRANT_BYTES + 1) /* of four parts */
#define PARTS 4u
#define MSGS 3u

static void send_one(unsigned i, uint64_t flags)
{
	struct iovec iov = { out + i * LEN, LEN };
	void *desc = desc_of(out_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = out + i * LEN };

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags), 0);
}

static void recv_one(unsigned i)
{
	ck_assert_int_eq(
		fi_recv(b.ep, in + i * LEN, LEN, desc_of(in_mr), FI_ADDR_UNSPEC, in + i * LEN), 0);
}

/* In any order: those that were lost begin again in their turn. */
static void want_all(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		want_ok(&b, NULL);
	for (i = 0; i < n; i++)
		want_ok(&a, NULL);
	ck_assert(!memcmp(in, out, n * LEN));
	want_none(&a);
	want_none(&b);
}

/* --- what breaks ---------------------------------------------------------------------- */

static unsigned refuse_grant; /* the nth from now on */

/* For fake.on_send. */
static enum fake_fate on_grant(uint8_t *msg, size_t *len, bool from_target)
{
	bool is_grant = from_target && mrf_frame_type(msg, *len) == MRF_FRAME_GRANT;

	if (!is_grant || !refuse_grant || --refuse_grant)
		return FAKE_DELIVER;
	return FAKE_REFUSE;
}

static void break_grant(unsigned nth)
{
	fake_freeze(true);
	refuse_grant = nth;
	fake.on_send = on_grant;
	fake_freeze(false);
}

/* The nth of these, once or more often. */
static const struct cut {
	unsigned frame, grant, part, times;
	enum mrf_wc_status status;
	bool ran; /* it came, and only its acknowledgement is lost */
} cuts[] = {
	{ .frame = 1, .times = 1, .status = MRF_WC_FLUSHED },
	{ .frame = 1, .times = 1, .status = MRF_WC_FLUSHED, .ran = true },
	{ .frame = 1, .times = 1, .status = MRF_WC_TIMEOUT, .ran = true },
	{ .frame = 2, .times = 1, .status = MRF_WC_FLUSHED },
	{ .frame = 2, .times = 2, .status = MRF_WC_TIMEOUT, .ran = true },
	{ .grant = 1 },
	{ .grant = 2 },
	{ .grant = 3 },
	{ .grant = PARTS },
	{ .grant = PARTS + 1 },
	{ .part = 1, .times = 1, .status = MRF_WC_FLUSHED },
	{ .part = 1, .times = 1, .status = MRF_WC_FLUSHED, .ran = true },
	{ .part = 2, .times = 1, .status = MRF_WC_TIMEOUT },
	{ .part = 2, .times = 1, .status = MRF_WC_TIMEOUT, .ran = true },
	{ .part = 3, .times = 2, .status = MRF_WC_OTHER },
	{ .part = 3, .times = 1, .status = MRF_WC_REFUSED },
	{ .part = PARTS, .times = 1, .status = MRF_WC_FLUSHED },
	{ .part = PARTS, .times = 1, .status = MRF_WC_FLUSHED, .ran = true },
	{ .part = PARTS, .times = 1, .status = MRF_WC_TIMEOUT, .ran = true },
	{ .part = PARTS + 1, .times = 1, .status = MRF_WC_FLUSHED, .ran = true },
};
#define CUTS ((int)MRF_ARRAY_SIZE(cuts))

static void order(const struct cut *cut)
{
	if (cut->frame)
		fake_break_frame(cut->frame, cut->times, cut->status, cut->ran);
	if (cut->part)
		fake_break_pair(cut->part, cut->times, cut->status, cut->ran);
	break_grant(cut->grant);
}

/* Receives are posted before or after the sends. */
static void cross(const struct cut *cut, bool posted, uint64_t flags)
{
	unsigned i, connects = fake_connects();

	memset(in, 0, MSGS * LEN);
	for (i = 0; posted && i < MSGS; i++)
		recv_one(i);
	order(cut);
	for (i = 0; i < MSGS; i++)
		send_one(i, flags);
	for (i = 0; !posted && i < MSGS; i++)
		recv_one(i);
	want_all(MSGS);
	ck_assert_uint_gt(fake_connects(), connects);
	ck_assert_uint_eq(offers(), 0);
	want_idle(&a);
	fake_heal();
}

START_TEST(a_line_that_breaks_loses_nothing)
{
	ends_open(&(struct node_opt){ .mr_mode = modes[_i % MODES] }, MSGS * LEN);
	cross(&cuts[_i / MODES], false, 0);
	cross(&cuts[_i / MODES], true, 0);
	cross(&cuts[_i / MODES], true, FI_DELIVERY_COMPLETE);
	cross(&cuts[_i / MODES], false, FI_DELIVERY_COMPLETE);
	ends_close();
}
END_TEST

/* --- the target hangs up ------------------------------------------------------------------ */

/* With nothing on its way: nobody is in doubt of anything. */
START_TEST(an_offer_waits_through_the_end_of_its_line)
{
	unsigned connects;

	ends_open(&(struct node_opt){ .mr_mode = modes[_i] }, MSGS * LEN);
	send_one(0, 0);
	want_soon(offers() == 1);
	want_none(&a);
	connects = fake_connects();
	fake_hang_up(node_agent(&b)->cq);
	want_soon(fake_connects() != connects);
	want_none(&a);
	send_one(1, 0);
	recv_one(0);
	recv_one(1);
	want_all(2);
	ends_close();
}
END_TEST

/* Not so often that the target would seem to drop each; without and with bytes on their way. */
START_TEST(an_offer_waits_through_the_ends_of_many_lines)
{
	unsigned connects, n;

	ends_open(&(struct node_opt){ .mr_mode = modes[_i] }, MSGS * LEN);
	send_one(0, 0);
	want_soon(offers() == 1);
	for (n = 0; n < MRF_LOSSES - 1; n++) {
		if (n == 2) {
			fake_hold_pairs(true);
			recv_one(0);
		}
		if (n >= 2)
			want_soon((fi_cq_read(a.cq, NULL, 0), fake_queued() > 0));
		connects = fake_connects();
		fake_hang_up(node_agent(&b)->cq);
		want_soon(fake_connects() != connects);
	}
	fake_hold_pairs(false);
	want_all(1);
	ends_close();
}
END_TEST

/*
 * Each comes with a line whose acknowledgement is lost, so that it is the next line that says so: not one
 * completes on the line that it was sent over, and still the target has dropped none of them.
 */
static void lose_acknowledgements(void (*breaks)(unsigned, unsigned, enum mrf_wc_status, bool),
				  size_t len, uint64_t flags)
{
	struct iovec iov = { out, len };
	void *desc = desc_of(out_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = out };
	int n;

	for (n = 0; n < 2 * MRF_LOSSES; n++) {
		breaks(1, 1, MRF_WC_TIMEOUT, true);
		recv_one(0);
		ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags), 0);
		want_ok(&b, in);
		want_ok(&a, out);
	}
}

START_TEST(a_line_whose_acknowledgements_are_lost_drops_nothing)
{
	const uint64_t flags = _i / MODES ? FI_DELIVERY_COMPLETE : 0;

	ends_open(&(struct node_opt){ .mr_mode = modes[_i % MODES] }, LEN);
	lose_acknowledgements(fake_break_pair, MRF_GRANT_BYTES, flags);
	lose_acknowledgements(fake_break_frame, MRF_GRANT_BYTES, flags);
	lose_acknowledgements(fake_break_frame, 100, flags);
	ends_close();
}
END_TEST

/* The next frame is a probe: a machine may go while an offer waits, also after the line was lost. */
START_TEST(the_machine_of_a_waiting_offer_is_watched)
{
	unsigned connects;

	ends_open(&(struct node_opt){ .mr_mode = modes[_i] }, MSGS * LEN);
	send_one(0, 0);
	want_soon(offers() == 1);
	connects = fake_connects();
	fake_hang_up(node_agent(&b)->cq);
	want_soon(fake_connects() != connects);
	want_none(&a);
	connects = fake_connects();
	fake_break_frame(1, 1, MRF_WC_TIMEOUT, false);
	want_soon(fake_connects() != connects);
	recv_one(0);
	want_all(1);
	ends_close();
}
END_TEST

/* --- a question and an end on the way ------------------------------------------------------------ */

/* The next grants of b wait, or go. */
static void grants_wait(bool wait)
{
	struct mrf_inbox *inbox = node_ep(&b)->inbox;

	mrf_lock_take(&inbox->ep->lock);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		inlet->granting += wait ? MRF_GRANTS_SENT : -MRF_GRANTS_SENT;
		if (!wait)
			mrf_grant_go_locked(inlet);
	}
	mrf_lock_release(&inbox->ep->lock);
}

/*
 * The first offer ends while the question about it is on the way: its sender has its answer, and asks about the
 * next one, before the answer to this question has gone.
 */
START_TEST(an_end_that_crosses_its_question_is_its_answer)
{
	unsigned connects;

	ends_open(&(struct node_opt){ .mr_mode = modes[_i] }, MSGS * LEN);
	send_one(0, FI_DELIVERY_COMPLETE);
	send_one(1, FI_DELIVERY_COMPLETE);
	want_soon(offers() == 2);
	connects = fake_connects();
	fake_hold_frames(true);
	fake_hang_up(node_agent(&b)->cq);
	want_soon(fake_connects() != connects && fake_queued() == 1);
	ck_assert_int_eq(fi_recv(b.ep, in, 0, desc_of(in_mr), FI_ADDR_UNSPEC, in), 0);
	want_err(&b, in, FI_ETRUNC, "");
	want_ok(&a, out);
	want_soon(fake_queued() == 2);
	connects = fake_connects();
	grants_wait(true);
	fake_hold_frames(false);
	want_soon(!fake_queued());
	usleep(20000);
	grants_wait(false);
	recv_one(1);
	want_ok(&b, in + LEN);
	want_ok(&a, out + LEN);
	ck_assert(!memcmp(in + LEN, out + LEN, LEN));
	ck_assert_uint_eq(fake_connects(), connects);
	ends_close();
}
END_TEST

/* --- all has come, and letting go of its buffer takes long ------------------------------------ */

static atomic_bool holds, inside;

void __real_mrf_local_drop(struct mrf_buf *buf, struct mrf_local *local);
void __wrap_mrf_local_drop(struct mrf_buf *buf, struct mrf_local *local);
void __wrap_mrf_local_drop(struct mrf_buf *buf, struct mrf_local *local)
{
	while (atomic_load(&holds) && buf == &node_ep(&b)->buf) {
		atomic_store(&inside, true);
		usleep(1000);
	}
	__real_mrf_local_drop(buf, local);
}

/* Without a cache each buffer is registered for its message alone. */
static void open_held(void)
{
	ck_assert_int_eq(setenv("FI_MR_CACHE_MAX_COUNT", "0", 1), 0);
	mrf_env_reload();
	ends_open(NULL, MSGS * LEN);
	atomic_store(&inside, false);
	atomic_store(&holds, true);
	recv_one(0);
}

/* Nobody polls at b meanwhile: its agent has a job do it. */
static void close_held(void)
{
	atomic_store(&holds, false);
	want_ok(&b, in);
	ck_assert(!memcmp(in, out, LEN));
	ends_close();
	ck_assert_int_eq(unsetenv("FI_MR_CACHE_MAX_COUNT"), 0);
	mrf_env_reload();
}

/* It does not know whether all has come: its target, which is not done with it, has to say so. */
START_TEST(a_sender_is_told_of_an_end_that_takes_long)
{
	unsigned connects;

	open_held();
	fake_break_pair(PARTS, 1, MRF_WC_TIMEOUT, true);
	connects = fake_connects();
	send_one(0, 0);
	want_soon(atomic_load(&inside) && fake_connects() > connects + 1);
	want_none(&a);
	atomic_store(&holds, false);
	want_ok(&a, out);
	close_held();
}
END_TEST

/* Its sender is done with it, and so does not ask about it. */
START_TEST(what_has_come_is_not_given_up)
{
	open_held();
	send_one(0, 0);
	want_ok(&a, out);
	want_soon(atomic_load(&inside));
	fake_hang_up(node_agent(&b)->cq);
	send_one(1, 0);
	want_soon(offers() == 2);
	want_none(&a);
	close_held();
}
END_TEST

static TCase *tcase_steps(void)
{
	TCase *tc = tcase_create("steps");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_line_that_breaks_loses_nothing, 0, CUTS * MODES);
	return tc;
}

static TCase *tcase_hung_up(void)
{
	TCase *tc = tcase_create("hung up");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, an_offer_waits_through_the_end_of_its_line, 0, MODES);
	tcase_add_loop_test(tc, an_offer_waits_through_the_ends_of_many_lines, 0, MODES);
	tcase_add_loop_test(tc, a_line_whose_acknowledgements_are_lost_drops_nothing, 0, 2 * MODES);
	tcase_add_loop_test(tc, the_machine_of_a_waiting_offer_is_watched, 0, MODES);
	tcase_add_loop_test(tc, an_end_that_crosses_its_question_is_its_answer, 0, MODES);
	tcase_add_test(tc, a_sender_is_told_of_an_end_that_takes_long);
	tcase_add_test(tc, what_has_come_is_not_given_up);
	return tc;
}

UNIT_MAIN("breaks of lines of long messages", tcase_steps, tcase_hung_up)

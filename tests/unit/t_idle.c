/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines that nobody uses are closed when there are many, on the fake fabric; what is sent afterwards
 * arrives as ever, once. Each name that the address vector has for b is a peer of its own.
 */
#include <string.h>
#include "contract/budget.h"
#include "ep/tx/idle.h"
#include "two_ends.h"

#define MORE 20u
#define LINES (MRF_LINES_KEPT + MORE)

static fi_addr_t names[LINES];

static void setup(void)
{
	fixture_setup();
	ends_open(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED }, PAGE);
}

static void teardown(void)
{
	ends_close();
	fixture_teardown();
}

/* Message `number` by line i: received, and completed. */
static void send_by(unsigned i, uint64_t number)
{
	uint64_t got = 0;

	ck_assert_int_eq(fi_recv(b.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got), 0);
	ck_assert_int_eq(fi_inject(a.ep, &number, sizeof(number), names[i]), 0);
	want_ok(&b, &got);
	ck_assert_uint_eq(got, number);
}

static bool has_line_locked(unsigned i)
{
	return node_ep(&a)->peers[MRF_CONN_LINE].of[names[i]]->state == MRF_PEER_READY;
}

static bool has_line(unsigned i)
{
	struct mrf_ep *ep = node_ep(&a);
	bool has;

	mrf_lock_take(&ep->lock);
	has = has_line_locked(i);
	mrf_lock_release(&ep->lock);
	return has;
}

static unsigned count_lines(unsigned n)
{
	unsigned i, count = 0;

	for (i = 0; i < n; i++)
		count += has_line(i);
	return count;
}

/* A look so many ms from now. */
static int64_t look_in(int64_t ms)
{
	struct mrf_ep *ep = node_ep(&a);
	int64_t next;

	mrf_lock_take(&ep->lock);
	next = mrf_idle_look_locked(ep, mrf_now_ms() + ms);
	mrf_lock_release(&ep->lock);
	return next;
}

/* Each has been used, and that has been seen. */
static void make_lines(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		names[i] = node_insert(&a, &b);
		send_by(i, i);
	}
	want_idle(&a);
	look_in(0);
}

static bool is_timed(void)
{
	return mrf_timer_runs(&node_ep(&a)->idle);
}

START_TEST(few_lines_are_kept)
{
	make_lines(MRF_LINES_KEPT);
	ck_assert(!is_timed());
	ck_assert_int_eq(look_in(2 * MRF_IDLE_MS), -1);
	ck_assert_uint_eq(count_lines(MRF_LINES_KEPT), MRF_LINES_KEPT);
}
END_TEST

START_TEST(those_that_are_idle_longest_are_closed)
{
	unsigned i, closed;

	make_lines(LINES);
	ck_assert(is_timed());
	/* Not yet; and these are used meanwhile. */
	ck_assert_int_gt(look_in(MRF_IDLE_MS / 2), 1);
	ck_assert_uint_eq(count_lines(LINES), LINES);
	for (i = 0; i < 5; i++)
		send_by(i, 1000 + i);
	want_idle(&a);
	ck_assert_int_gt(look_in(MRF_IDLE_MS * 3 / 4), 1);
	for (closed = 0; look_in(MRF_IDLE_MS * 3 / 2) == 1; closed++)
		;
	ck_assert_uint_eq(closed, MORE);
	want_soon(count_lines(LINES) == MRF_LINES_KEPT);
	for (i = 0; i < LINES; i++)
		ck_assert_int_eq(has_line(i), i < 5 || i >= 5 + MORE);
}
END_TEST

START_TEST(a_message_makes_another_line)
{
	unsigned i, connects;

	make_lines(LINES);
	while (look_in(2 * MRF_IDLE_MS) == 1)
		;
	want_soon(count_lines(LINES) == MRF_LINES_KEPT);
	connects = fake_connects();
	for (i = 0; i < LINES; i++)
		send_by(i, 1000 + i);
	ck_assert_uint_eq(fake_connects() - connects, MORE);
	ck_assert_uint_eq(count_lines(LINES), LINES);
	want_none(&b);
	want_idle(&a);
}
END_TEST

/* One on whose way something is, or for which something waits, is in use. */
START_TEST(a_line_that_waits_for_its_target_is_kept)
{
	uint8_t *at = out;
	unsigned i;

	make_lines(LINES);
	fake_hold_frames(true);
	for (i = 0; i < LINES - 1; i++)
		ck_assert_int_eq(fi_send(a.ep, at, 8, NULL, names[i], at), 0);
	ck_assert_int_eq(look_in(2 * MRF_IDLE_MS), 1);
	ck_assert_int_gt(look_in(2 * MRF_IDLE_MS), 1);
	want_soon(!has_line(LINES - 1));
	ck_assert_uint_eq(count_lines(LINES - 1), LINES - 1);
	fake_hold_frames(false);
	for (i = 0; i < LINES - 1; i++)
		want_ok(&a, at);
}
END_TEST

static TCase *tcase_idle(void)
{
	TCase *tc = tcase_create("idle");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, few_lines_are_kept);
	tcase_add_test(tc, those_that_are_idle_longest_are_closed);
	tcase_add_test(tc, a_message_makes_another_line);
	tcase_add_test(tc, a_line_that_waits_for_its_target_is_kept);
	return tc;
}

UNIT_MAIN("idle lines", tcase_idle)

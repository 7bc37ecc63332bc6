/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection breaks, and the target knows what it has done: each operation is done once, and
 * is said to be done. The fake's packets are 4 KiB long.
 */
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"

static struct pair p;
static struct fid_mr *local, *far_local;
static uint64_t one = 1;

#define LONG 10000ul /* bytes: three packets */
#define CELL 40960ul /* of dst, for atomic operations */
#define LOCAL_KEY 2

static void untell(uint8_t *welcome, size_t len)
{
	ck_assert_uint_ge(len, 32);
	memset(welcome + 28, 0, 4);
}

static void open_all(void)
{
	fake.packets = true;
	pair_open(&p, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED,
					  .caps = FI_RMA | FI_ATOMIC,
					  .counters = true });
	local = node_reg(&p.a, p.src, PAIR_LEN, FI_READ | FI_WRITE, LOCAL_KEY);
	/* Keys known, some packets on their way before. */
	pair_write(&p, 0, LONG);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
}

static void close_all(void)
{
	want_soon(node_idle(&p.a));
	must_close(&local->fid);
	if (far_local)
		must_close(&far_local->fid);
	far_local = NULL;
	pair_close(&p);
}

static void read_ahead(void)
{
	ck_assert_int_eq(
		fi_read(p.a.ep, p.src + 50000, LONG, fi_mr_desc(local), p.to, p.base, p.key, &p),
		0);
}

static void add(void)
{
	ck_assert_int_eq(fi_atomic(p.a.ep, &one, 1, NULL, p.to, p.base + CELL, p.key, FI_UINT64,
				   FI_SUM, &one),
			 0);
}

static uint64_t cell(void)
{
	uint64_t value;

	fake_copy(&value, p.dst + CELL, sizeof(value));
	return value;
}

/* How often that was written. */
static unsigned writes_at(size_t at)
{
	unsigned n = 0;

	for (size_t i = 0; i < fake_nlog(); i++)
		n += fake.log[i].op != MRF_VWR_READ && fake.log[i].addr == (uintptr_t)p.dst + at;
	return n;
}

/* The read that is first gets no answer. */
static void go_on(void)
{
	fake_break(1, 1, MRF_WC_TIMEOUT, false);
	fake_hold(false);
}

/* --- not done -------------------------------------------------------------------------- */

START_TEST(what_is_behind_a_read_that_was_cut_is_done_once)
{
	open_all();
	read_ahead();
	pair_write(&p, 20000, LONG);
	add();
	pair_write(&p, 32000, 8);
	go_on();
	want_ok(&p.a, &p);
	want_ok(&p.a, pair_ctx(&p, 20000));
	want_ok(&p.a, &one);
	want_ok(&p.a, pair_ctx(&p, 32000));
	ck_assert_uint_eq(writes_at(20000), 1);
	ck_assert_uint_eq(writes_at(32000), 1);
	ck_assert_uint_eq(cell(), 1);
	ck_assert_mem_eq(p.dst + 20000, p.src + 20000, LONG);
	ck_assert_uint_eq(fake_connects(), 2);
	ck_assert_uint_eq(fi_cntr_read(p.a.wr), 4);
	ck_assert_uint_eq(fi_cntr_readerr(p.a.wr), 0);
	close_all();
}
END_TEST

/* The target has done the short one; of the long one all packets but the last. */
START_TEST(write_that_was_done_in_part_is_done_again)
{
	open_all();
	read_ahead();
	pair_write(&p, 32000, 8);
	pair_write(&p, 20000, LONG);
	fake.overtaken = 3 + 1 + 2;
	go_on();
	want_ok(&p.a, pair_ctx(&p, 32000));
	want_ok(&p.a, &p);
	want_ok(&p.a, pair_ctx(&p, 20000));
	ck_assert_uint_eq(writes_at(32000), 0);
	ck_assert_uint_eq(writes_at(20000), 1);
	close_all();
}
END_TEST

/* --- done ------------------------------------------------------------------------------ */

START_TEST(what_was_done_behind_a_read_whose_answer_was_lost_is_said_to_be_done)
{
	open_all();
	read_ahead();
	pair_write(&p, 20000, LONG);
	add();
	pair_write(&p, 32000, 8);
	fake_run_unacknowledged();
	go_on();
	want_ok(&p.a, pair_ctx(&p, 20000));
	want_ok(&p.a, &one);
	want_ok(&p.a, pair_ctx(&p, 32000));
	want_ok(&p.a, &p);
	ck_assert_uint_eq(writes_at(20000), 1);
	ck_assert_uint_eq(writes_at(32000), 1);
	ck_assert_uint_eq(cell(), 1);
	close_all();
}
END_TEST

START_TEST(atomic_operation_that_was_done_and_has_lost_its_result_says_so)
{
	uint64_t result = 77;

	open_all();
	read_ahead();
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &one, 1, NULL, &result, NULL, p.to, p.base + CELL,
					 p.key, FI_UINT64, FI_SUM, &result),
			 0);
	fake_run_unacknowledged();
	go_on();
	ck_assert_int_eq(want_err(&p.a, &result, FI_ECONNRESET, "was done, but its results"), 4115);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(cell(), 1);
	close_all();
}
END_TEST

/* The first write is sent again, and finds its buffer gone; the atomic operation was done. */
START_TEST(what_was_done_behind_a_buffer_that_was_closed_is_said_to_be_done)
{
	open_all();
	fake.flush_local = _i;
	far_local = node_reg(&p.a, p.src, PAGE, FI_WRITE, 9);
	ck_assert_int_eq(
		fi_write(p.a.ep, p.src, 400, fi_mr_desc(far_local), p.to, p.base, p.key, &p), 0);
	add();
	fake_run_unacknowledged();
	must_close(&far_local->fid);
	far_local = NULL;
	fake_hold(false);
	want_err(&p.a, &p, FI_EFAULT, "may or may not");
	want_ok(&p.a, &one);
	ck_assert_uint_eq(cell(), 1);
	close_all();
}
END_TEST

/* --- nobody knows ---------------------------------------------------------------------- */

START_TEST(target_that_does_not_know_leaves_the_doubt)
{
	open_all();
	fake.on_accept = untell;
	read_ahead();
	pair_write(&p, 20000, LONG);
	add();
	if (_i)
		fake_run_unacknowledged();
	go_on();
	want_err(&p.a, pair_ctx(&p, 20000), FI_ETIMEDOUT, "may or may not");
	want_err(&p.a, &one, FI_ETIMEDOUT, "may or may not");
	want_ok(&p.a, &p);
	ck_assert_uint_eq(writes_at(20000), (unsigned)_i);
	ck_assert_uint_eq(cell(), (unsigned)_i);
	fake.on_accept = NULL;
	close_all();
}
END_TEST

START_TEST(peer_that_is_gone_leaves_the_doubt)
{
	open_all();
	read_ahead();
	pair_write(&p, 20000, LONG);
	fake_unreachable(1, FI_EHOSTUNREACH);
	go_on();
	want_err(&p.a, &p, FI_EHOSTUNREACH, NULL);
	want_err(&p.a, pair_ctx(&p, 20000), FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(writes_at(20000), 0);
	fake_unreachable(0, 0);
	close_all();
}
END_TEST

START_TEST(write_that_nobody_answers_asks_nobody)
{
	open_all();
	pair_write(&p, 20000, LONG);
	pair_write(&p, 32000, 8);
	go_on();
	want_err(&p.a, pair_ctx(&p, 20000), FI_ETIMEDOUT, "may or may not");
	want_err(&p.a, pair_ctx(&p, 32000), FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(fake_connects(), 1);
	close_all();
}
END_TEST

static TCase *tcase_doubt(void)
{
	TCase *tc = tcase_create("doubt");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_is_behind_a_read_that_was_cut_is_done_once);
	tcase_add_test(tc, write_that_was_done_in_part_is_done_again);
	tcase_add_test(tc, what_was_done_behind_a_read_whose_answer_was_lost_is_said_to_be_done);
	tcase_add_test(tc, atomic_operation_that_was_done_and_has_lost_its_result_says_so);
	tcase_add_loop_test(tc, what_was_done_behind_a_buffer_that_was_closed_is_said_to_be_done, 0,
			    2);
	tcase_add_loop_test(tc, target_that_does_not_know_leaves_the_doubt, 0, 2);
	tcase_add_test(tc, peer_that_is_gone_leaves_the_doubt);
	tcase_add_test(tc, write_that_nobody_answers_asks_nobody);
	return tc;
}

UNIT_MAIN("doubt", tcase_doubt)

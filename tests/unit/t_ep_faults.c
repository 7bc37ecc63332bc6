/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint does when the device, the network, the peer or the memory fails it. */
#include <limits.h>
#include <sys/mman.h>
#include "ep/tx/fail.h"
#include "ep_fixture.h"
#include "fail_once.h"

static struct pair p;

static void warm_up(void)
{
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

/* Where operation i of a test has its bytes; so contexts differ. */
static size_t place(int i)
{
	return (size_t)i * 400;
}

static void write_i(int i)
{
	pair_write(&p, place(i), 400);
}

static void read_i(int i)
{
	pair_read(&p, place(i), 400);
}

/* Completions of n operations, in any order: err[i] says how each ends, 0 well. */
static void want_each(int n, const int *err)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < n; i++) {
		struct fi_cq_data_entry e = { 0 };
		struct fi_cq_err_entry got = { 0 };
		ssize_t ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS);
		size_t which;

		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(p.a.cq, &got, 0), 1);
			e.op_context = got.op_context;
		} else {
			ck_assert_int_eq(ret, 1);
		}
		which = (size_t)((uint8_t *)e.op_context - p.src) / 400;
		ck_assert_uint_lt(which, (size_t)n);
		ck_assert_msg(!(seen & 1ull << which), "operation %zu completed twice", which);
		seen |= 1ull << which;
		ck_assert_msg(got.err == err[which], "operation %zu: %d instead of %d: %s", which,
			      got.err, err[which], (char *)got.err_data);
	}
	want_none(&p.a);
	ck_assert_uint_eq(node_ep(&p.a)->nops, 0);
	ck_assert_uint_eq(node_ep(&p.a)->scq_used, 0);
}

/* How often the target's memory saw operation i since the log had from entries. */
static unsigned times_done(size_t from, int i)
{
	unsigned n = 0;

	for (; from < fake.nlog; from++)
		n += fake.log[from].addr == (uintptr_t)p.dst + place(i);
	return n;
}

/* --- work requests that fail
 * ---------------------------------------------------------------- */

START_TEST(fault_no_answer_fails_writes_and_repeats_reads)
{
	static const enum mrf_wc_status status[] = { MRF_WC_TIMEOUT, MRF_WC_OTHER };
	static const int errs[] = { FI_ETIMEDOUT, FI_EIO };
	int e = errs[_i / 2], err[6] = { 0, e, e, 0, 0, e }, i;
	bool ran = _i % 2;

	pair_open(&p, PLAIN);
	warm_up();
	fill(p.dst, PAIR_LEN, 1);
	fake_hold(true);
	for (i = 0; i < 6; i++) {
		if (i == 3 || i == 4)
			read_i(i);
		else
			write_i(i);
	}
	fake_break(2, 1, status[_i / 2], ran);
	fake_hold(false);
	want_each(6, err);
	ck_assert_uint_eq(times_done(1, 0), 1);
	ck_assert_uint_eq(times_done(1, 1), ran);
	ck_assert_uint_eq(times_done(1, 2), 0);
	ck_assert_uint_eq(times_done(1, 3), 1);
	ck_assert_uint_eq(times_done(1, 5), 0);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_read_is_repeated_a_bounded_number_of_times)
{
	pair_open(&p, PLAIN);
	warm_up();
	fake_break(1, 2, MRF_WC_TIMEOUT, false);
	read_i(1);
	want_ok(&p.a, pair_ctx(&p, place(1)));
	fake_break(1, 3, MRF_WC_TIMEOUT, false);
	read_i(1);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, place(1)), FI_ETIMEDOUT, "no answer"), 4111);
	warm_up();
	pair_close(&p);
}
END_TEST

/* The part that was acknowledged is not sent again; the rest may have been done. */
START_TEST(fault_no_answer_halfway_through_a_read_goes_on_where_it_was)
{
	size_t i;

	fake.max_msg_size = PAGE;
	pair_open(&p, PLAIN);
	warm_up();
	fill(p.dst, PAIR_LEN, 5);
	fake_break(6, 1, MRF_WC_TIMEOUT, false);
	pair_read(&p, 0, 10 * PAGE);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(p.src, 10 * PAGE, 5));
	ck_assert_uint_eq(fake.nlog, 11);
	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(fake.log[1 + i].addr, (uintptr_t)p.dst + i * PAGE);
	pair_close(&p);
}
END_TEST

static void write_desc(struct fid_mr *mr, int i)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src + place(i), 400, fi_mr_desc(mr), p.to,
				  p.base + place(i), p.key, pair_ctx(&p, place(i))),
			 0);
}

/* In the forms of both kernels. */
START_TEST(fault_closed_local_buffer_fails_its_operation_only)
{
	struct node_opt opt = { .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED |
					   (_i & 2 ? FI_MR_PROV_KEY : 0) };
	int err[8] = { 0, 0, FI_EFAULT, 0, 0, 0, 0, 0 }, first = _i & 1 ? 2 : 0, i;
	struct fid_mr *good, *doomed;

	pair_open(&p, &opt);
	good = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 1);
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 2);
	write_desc(good, 7);
	want_ok(&p.a, NULL);
	fake.flush_local = _i & 1;
	fake_hold(true);
	/* 6.12 does not tell what was ahead of it apart: nothing is, here. */
	for (i = first; i < 8; i++)
		write_desc(err[i] ? doomed : good, i);
	must_close(&doomed->fid);
	fake_hold(false);
	if (first) {
		for (i = first; i < 8; i++) {
			if (err[i])
				want_err(&p.a, pair_ctx(&p, place(i)), err[i], "local buffer");
			else
				want_ok(&p.a, pair_ctx(&p, place(i)));
		}
		want_none(&p.a);
	} else {
		want_each(8, err);
	}
	for (i = first; i < 8; i++)
		ck_assert_uint_eq(times_done(1, i), !err[i]);
	must_close(&good->fid);
	pair_close(&p);
}
END_TEST

/* What was in flight ahead of it comes back flushed though it was done: never done twice.
 */
START_TEST(fault_flush_without_a_culprit_up_front_repeats_no_write)
{
	struct node_opt opt = { .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED };
	int err[6] = { FI_EIO, FI_EIO, FI_EIO, FI_EFAULT, 0, 0 }, i;
	struct fid_mr *good, *doomed;

	pair_open(&p, &opt);
	good = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 1);
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 2);
	write_desc(good, 7);
	want_ok(&p.a, NULL);
	fake.flush_local = true;
	fake_hold(true);
	for (i = 0; i < 6; i++)
		write_desc(i == 3 ? doomed : good, i);
	must_close(&doomed->fid);
	fake_hold(false);
	want_each(6, err);
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(times_done(1, i), i != 3);
	must_close(&good->fid);
	pair_close(&p);
}
END_TEST

START_TEST(fault_flush_that_nobody_caused_repeats_no_write)
{
	int err[4] = { FI_ECONNRESET, FI_ECONNRESET, 0, FI_ECONNRESET };

	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	write_i(0);
	write_i(1);
	read_i(2);
	write_i(3);
	fake_break(1, 1, MRF_WC_FLUSHED, true);
	fake_hold(false);
	want_each(4, err);
	ck_assert_uint_eq(times_done(1, 0), 1);
	ck_assert_uint_eq(times_done(1, 1), 0);
	pair_close(&p);
}
END_TEST

/* As 6.12 reports a bad local buffer: what is ahead and behind is done all the same. */
START_TEST(fault_operation_that_is_always_flushed_fails_alone)
{
	int err[4] = { 0, FI_ECONNRESET, 0, 0 }, i;

	fake.packets = true;
	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	write_i(0);
	if (_i)
		read_i(1);
	else
		write_i(1);
	read_i(2);
	write_i(3);
	fake_break(2, 3, MRF_WC_FLUSHED, false);
	fake_hold(false);
	want_each(4, err);
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(times_done(1, i), i != 1);
	fake_break(1, 3, MRF_WC_FLUSHED, false);
	write_i(1);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, place(1)), FI_ECONNRESET, "each time"), 4116);
	warm_up();
	pair_close(&p);
}
END_TEST

/* A connection is one try, however many parts were in flight on it. */
START_TEST(fault_flush_of_many_parts_is_one_try)
{
	fake.packets = true;
	fake.max_msg_size = PAGE;
	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	if (_i)
		pair_read(&p, 0, 10 * PAGE);
	else
		pair_write(&p, 0, 10 * PAGE);
	fake_break(1, 1, MRF_WC_FLUSHED, false);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_mem_eq(p.src, p.dst, 10 * PAGE);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_read_of_many_parts_ahead_of_a_closed_local_buffer_is_done)
{
	struct node_opt opt = { .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED };
	struct fid_mr *good, *doomed;

	fake.max_msg_size = PAGE;
	fake.flush_local = true;
	pair_open(&p, &opt);
	good = node_reg(&p.a, p.src, PAIR_LEN, FI_READ | FI_WRITE, 1);
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 2);
	write_desc(good, 7);
	want_ok(&p.a, NULL);
	fake_hold(true);
	ck_assert_int_eq(
		fi_read(p.a.ep, p.src, 10 * PAGE, fi_mr_desc(good), p.to, p.base, p.key, &p), 0);
	write_desc(doomed, 1);
	must_close(&doomed->fid);
	fake_hold(false);
	want_err(&p.a, pair_ctx(&p, place(1)), FI_EFAULT, "local buffer");
	want_ok(&p.a, &p);
	must_close(&good->fid);
	pair_close(&p);
}
END_TEST

START_TEST(fault_many_failures_in_a_row_do_not_count_against_the_others)
{
	struct node_opt opt = { .mr_mode =
					FI_MR_LOCAL | FI_MR_ALLOCATED | (_i ? FI_MR_PROV_KEY : 0) };
	struct fid_mr *good, *doomed;
	int err[20], i;

	pair_open(&p, &opt);
	good = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 1);
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 2);
	write_desc(good, 0);
	want_ok(&p.a, NULL);
	fake_hold(true);
	for (i = 0; i < 20; i++) {
		err[i] = i < 19 ? FI_EFAULT : 0;
		write_desc(i < 19 ? doomed : good, i);
	}
	must_close(&doomed->fid);
	fake_hold(false);
	want_each(20, err);
	must_close(&good->fid);
	pair_close(&p);
}
END_TEST

START_TEST(fault_device_that_takes_nothing_fails_each_operation)
{
	pair_open(&p, PLAIN);
	if (_i)
		warm_up();
	fake_fail_always(FAKE_POST, FI_EIO);
	/* The first waits for a question that cannot be sent; or is posted itself. */
	write_i(0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EIO, "rejected the work"), 4108);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 4711, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EIO, NULL), 4108);
	fake_heal();
	/* Full, and nothing is in flight that would make room. The short way tries, too. */
	fake_fail_always(FAKE_POST, FI_EAGAIN);
	write_i(1);
	want_err(&p.a, pair_ctx(&p, place(1)), FI_EIO, NULL);
	fake_heal();
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_device_that_is_full_is_asked_again)
{
	int err[3] = { 0 };

	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	write_i(0);
	fake_fail(FAKE_POST, 1, FI_EAGAIN);
	write_i(1);
	fake_hold(false);
	want_soon(fake_nlog() == 3);
	write_i(2);
	want_each(3, err);
	pair_close(&p);
}
END_TEST

/* --- the peer goes
 * ------------------------------------------------------------------------------ */

START_TEST(fault_killed_peer_ends_everything_in_bounded_time)
{
	int err[20], i;
	int64_t begin;

	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	for (i = 0; i < 20; i++) {
		err[i] = i % 4 == 1 ? FI_ECONNREFUSED : FI_ECONNRESET;
		if (i % 4 == 1)
			read_i(i);
		else
			write_i(i);
	}
	begin = mrf_now_ms();
	fake_kill(node_agent(&p.b)->cm);
	want_each(20, err);
	ck_assert_int_lt(mrf_now_ms() - begin, 5000);
	fake_hold(false);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_ECONNREFUSED, "no endpoint listens");
	pair_close(&p);
}
END_TEST

START_TEST(fault_peer_killed_before_it_answers_ends_what_waits)
{
	pair_open(&p, PLAIN);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, !_i);
	if (_i) {
		/* Connected, the question on its way. */
		warm_up();
		fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	}
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 4711, &p), 0);
	usleep(5000);
	fake_kill(node_agent(&p.b)->cm);
	want_err(&p.a, &p, FI_ECONNREFUSED, NULL);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	pair_close(&p);
}
END_TEST

START_TEST(fault_peer_that_comes_back_is_reached_again)
{
	struct node_opt opt = { .port = 4711 };
	int i;

	pair_open(&p, NULL);
	must_close(&p.mr->fid);
	node_close(&p.b);
	node_open(&p.b, &opt);
	pair_reg(&p, REMOTE_RW);
	p.to = node_insert(&p.a, &p.b);
	for (i = 0; i < 5; i++) {
		/* Reads: a write may meet the old connection just before it is seen to be
		 * gone. */
		pair_read(&p, 0, 400);
		want_ok(&p.a, pair_ctx(&p, 0));
		must_close(&p.mr->fid);
		node_close(&p.b);
		node_open(&p.b, &opt);
		pair_reg(&p, REMOTE_RW);
	}
	pair_close(&p);
}
END_TEST

START_TEST(fault_target_that_listens_later_is_waited_for)
{
	struct node_opt opt = { .port = 4711 };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	int64_t begin, late;
	struct node n;

	memset(&p, 0, sizeof(p));
	node_open(&n, NULL);
	p.a = n;
	p.to = node_insert_port(&p.a, 4711);
	p.src = pages(PAIR_LEN);
	p.dst = pages(PAIR_LEN);
	fill(p.src, PAIR_LEN, 1);
	p.key = PAIR_KEY;
	begin = mrf_now_ms();
	pair_write(&p, 0, 8);
	usleep(120000);
	node_open(&p.b, &opt);
	late = mrf_now_ms() - begin;
	pair_reg(&p, REMOTE_RW);
	/* The region may have come too late for the question; on slow machines all for the tries. */
	if (fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS) != 1) {
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
		ck_assert_ptr_eq(err.op_context, pair_ctx(&p, 0));
		ck_assert(err.err == FI_EKEYREJECTED || (late > 300 && err.err == FI_ECONNREFUSED));
	}
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_nobody_listens_is_said_after_some_tries)
{
	fi_addr_t nowhere;
	int i;

	pair_open(&p, NULL);
	nowhere = node_insert_port(&p.a, 9);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, nowhere, 0, 1, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_ECONNREFUSED, "no endpoint listens"), 4126);
	want_err(&p.a, &p, FI_ECONNREFUSED, NULL);
	want_err(&p.a, &p, FI_ECONNREFUSED, NULL);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_address_that_cannot_be_reached_is_said_at_once)
{
	pair_open(&p, NULL);
	fake_unreachable(1, FI_EHOSTUNREACH);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EHOSTUNREACH, "cannot be reached"),
			 4128);
	fake_unreachable(1, FI_ETIMEDOUT);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_ETIMEDOUT, "no answer");
	fake_unreachable(1, FI_EACCES);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "credentials"), 5204);
	fake_fail(FAKE_RESOLVE, 1, FI_ENETUNREACH);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ENETUNREACH, "no route"), 4121);
	warm_up();
	pair_close(&p);
}
END_TEST

/* As when the kernel misses the neighbour's answer, or gets it late. */
START_TEST(fault_address_that_is_not_found_in_time_is_looked_for_again)
{
	pair_open(&p, NULL);
	fake_unresolved(3);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_address_that_nobody_has_ends_in_a_timeout_of_the_connection)
{
	int64_t begin;

	fixture_impatient();
	pair_open(&p, NULL);
	fake_unresolved(UINT_MAX);
	begin = mrf_now_ms();
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ETIMEDOUT, "no machine answers"), 4128);
	ck_assert_int_ge(mrf_now_ms() - begin, 990);
	fake_unresolved(0);
	warm_up();
	pair_close(&p);
}
END_TEST

/* It may have made room for another one, or it is gone, which the next attempt finds. */
START_TEST(fault_peer_that_drops_what_it_has_accepted_is_asked_again)
{
	pair_open(&p, NULL);
	fake_fail(FAKE_ESTABLISH, 1, FI_ECONNRESET);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(fake_failed());
	pair_close(&p);
}
END_TEST

START_TEST(fault_peer_that_goes_while_it_is_connected_is_said_to_be_gone)
{
	fixture_impatient();
	pair_open(&p, NULL);
	fake_fail_always(FAKE_ESTABLISH, FI_ECONNRESET);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET,
				  "the peer went away while the connection was being made"),
			 4127);
	fake_heal();
	warm_up();
	pair_close(&p);
}
END_TEST

/* With all that may stand before it, at its longest: half of the longest message was done. */
START_TEST(fault_of_the_longest_reason_is_told_to_the_last_word)
{
	static const char reason[] = "there is no answer to the connection request: does a "
				     "process with an enabled endpoint run there, and does its "
				     "rxe device work (rdma link)?";
	struct mrf_peer *peer;
	struct mrf_op *op;

	fixture_impatient();
	pair_open(&p, NULL);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	pair_write(&p, 0, 8);
	peer = node_ep(&p.a)->peers[MRF_CONN_ACCESS].of[p.to];
	mrf_lock_take(&peer->ep->lock);
	memset(&peer->addr.in6.sin6_addr, 0xee, sizeof(peer->addr.in6.sin6_addr));
	peer->addr.in6.sin6_family = AF_INET6;
	peer->addr.in6.sin6_scope_id = UINT32_MAX;
	op = mrf_list_entry(peer->queue.next, struct mrf_op, node);
	op->total = op->acked = 1ull << 30;
	mrf_fail_addr_locked(peer, FI_ETIMEDOUT, 4129, reason);
	mrf_lock_release(&peer->ep->lock);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_ETIMEDOUT, reason), 4129);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	pair_close(&p);
}
END_TEST

START_TEST(fault_stopped_target_ends_in_a_timeout_of_the_connection)
{
	int64_t begin;

	fixture_impatient();
	pair_open(&p, NULL);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	begin = mrf_now_ms();
	pair_write(&p, 0, 8);
	/* To the last word. */
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ETIMEDOUT,
				  "there is no answer to the connection request: does a process "
				  "with an enabled endpoint run there, and does its rxe device "
				  "work (rdma link)?"),
			 4129);
	ck_assert_int_ge(mrf_now_ms() - begin, 990);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(fault_stopped_target_still_serves_what_is_known)
{
	int err[10] = { 0 }, i;

	pair_open(&p, PLAIN);
	warm_up();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	for (i = 0; i < 9; i++)
		write_i(i);
	want_soon(fake_nlog() == 10);
	/* This one has to be asked about; it is answered when the target goes on. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 0, NULL, p.to, 0, PAIR_KEY, p.src + place(9)), 0);
	usleep(20000);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	want_each(10, err);
	pair_close(&p);
}
END_TEST

/* --- everything fails once
 * ------------------------------------------------------------------------ */

static unsigned nth; /* call that fails in this round of the sweep */

/* What one failure of the sweep may turn into, at a call or at a completion. */
static void allowed(int err, const char *what)
{
	static const int known[] = {
		0,	     FI_ENOMEM, FI_EIO, FI_ECONNREFUSED, FI_ECONNRESET, FI_ETIMEDOUT,
		FI_EOVERRUN, FI_EINVAL
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(known); i++) {
		if (err == known[i])
			return;
	}
	ck_abort_msg("%s: %d (%s)", what, err, fi_strerror(err));
}

/* Completions until n have come; true when the queue is overrun: no more will. */
static bool drain(int n)
{
	int64_t end = mrf_now_ms() + LONG_MS;

	while (n && mrf_now_ms() < end) {
		struct fi_cq_data_entry e;
		struct fi_cq_err_entry err = { 0 };
		ssize_t ret = LIBRARY(fi_cq_read(p.a.cq, &e, 1));

		if (ret == -FI_EAVAIL) {
			ret = LIBRARY(fi_cq_readerr(p.a.cq, &err, 0));
			allowed(err.err, "completion");
			if (err.err == FI_EOVERRUN)
				return true;
		}
		n -= ret == 1;
		if (ret == -FI_EAGAIN)
			usleep(100);
	}
	if (n)
		ck_abort_msg("failure %u: %d operations never completed", nth, n);
	return false;
}

/* One of each kind of access; returns true when the CQ is beyond use. */
static bool transfers(void)
{
	static const size_t len[] = { 8, 5000, 40000, 0, 1, 4096 };
	static uint8_t into[40000]; /* not p.src: a write may read it while a read is out */
	size_t i;
	int begun = 0;
	ssize_t ret;

	for (i = 0; i < MRF_ARRAY_SIZE(len); i++) {
		ret = LIBRARY(fi_write(p.a.ep, p.src, len[i], NULL, p.to, p.base, p.key, &p));
		begun += !ret;
		allowed((int)-ret, "fi_write");
		ret = LIBRARY(fi_read(p.a.ep, into, len[i], NULL, p.to, p.base, p.key, &p));
		begun += !ret;
		allowed((int)-ret, "fi_read");
	}
	ret = LIBRARY(fi_writedata(p.a.ep, p.src, 16, NULL, 1, p.to, p.base, p.key, &p));
	begun += !ret;
	return drain(begun);
}

/*
 * It was one failure, not the end of the endpoint. But what it broke may be noticed only
 * now, and take a write that is in flight with it.
 */
static void still_works(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		struct fi_cq_err_entry err = { 0 };
		struct fi_cq_data_entry e;
		ssize_t ret;

		pair_write(&p, 0, 8);
		ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS);
		if (ret == 1)
			return;
		if (ret != -FI_EAVAIL)
			break;
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
		allowed(err.err, "write after a failure");
	}
	ck_abort_msg("failure %u: the endpoint is not usable any more", nth);
}

/*
 * A region that is still pinned for the initiator, as in slow runs, is given back by fi_close:
 * if that fails it is called again.
 */
static void close_region(void)
{
	int ret = fi_close(&p.mr->fid);

	allowed(-ret, "fi_close");
	if (ret)
		must_close(&p.mr->fid);
	p.mr = NULL;
}

/* Opens, transfers, closes. Whatever fails, all of it can be closed and nothing is left.
 */
static void scenario(bool (*met)(void), void (*heal)(void))
{
	bool overrun;
	int ret;

	memset(&p, 0, sizeof(p));
	p.src = pages(PAIR_LEN);
	p.dst = pages(PAIR_LEN);
	ret = LIBRARY(node_try_open(&p.a, NULL));
	allowed(-ret, "open");
	if (!ret)
		ret = LIBRARY(node_try_open(&p.b, NULL));
	if (!ret) {
		struct sockaddr_in addr = node_ep(&p.b)->addr.in;

		ret = LIBRARY(fi_av_insert(p.a.av, &addr, 1, &p.to, 0, NULL)) == 1 ? 0 : -1;
	}
	if (!ret)
		ret = LIBRARY(fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY, 0,
					&p.mr, NULL));
	p.key = PAIR_KEY;
	if (!ret) {
		overrun = transfers();
		if (met())
			heal();
		if (!overrun && met())
			still_works();
	}
	node_close(&p.a);
	if (p.mr)
		close_region();
	pair_close(&p);
	ck_assert_uint_eq(fake_live(), 0);
}

static bool device_met(void)
{
	return fake_failed();
}

static void nothing(void)
{
}

START_TEST(fault_each_call_of_the_device_may_fail_once)
{
	static const int err[] = { FI_ENOMEM, FI_EINVAL, FI_EIO };
	outside = 1;
	nth = 0;
	do {
		fake_fail_any(++nth, err[_i]);
		scenario(device_met, nothing);
	} while (fake_failed());
	ck_assert_uint_gt(nth, 100);
}
END_TEST

START_TEST(fault_each_allocation_may_fail_once)
{
	outside = 1;
	nth = 0;
	do {
		alloc_order(++nth);
		scenario(alloc_met, alloc_heal);
	} while (alloc_met());
	alloc_heal();
	ck_assert_uint_gt(nth, 100);
}
END_TEST

static TCase *tcase_requests(void)
{
	TCase *tc = tcase_create("requests");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, fault_no_answer_fails_writes_and_repeats_reads, 0, 4);
	tcase_add_test(tc, fault_read_is_repeated_a_bounded_number_of_times);
	tcase_add_test(tc, fault_no_answer_halfway_through_a_read_goes_on_where_it_was);
	tcase_add_loop_test(tc, fault_closed_local_buffer_fails_its_operation_only, 0, 4);
	tcase_add_test(tc, fault_flush_without_a_culprit_up_front_repeats_no_write);
	tcase_add_test(tc, fault_flush_that_nobody_caused_repeats_no_write);
	tcase_add_loop_test(tc, fault_operation_that_is_always_flushed_fails_alone, 0, 2);
	tcase_add_loop_test(tc, fault_flush_of_many_parts_is_one_try, 0, 2);
	tcase_add_test(tc, fault_read_of_many_parts_ahead_of_a_closed_local_buffer_is_done);
	tcase_add_loop_test(tc, fault_many_failures_in_a_row_do_not_count_against_the_others, 0, 2);
	tcase_add_loop_test(tc, fault_device_that_takes_nothing_fails_each_operation, 0, 2);
	tcase_add_test(tc, fault_device_that_is_full_is_asked_again);
	return tc;
}

static TCase *tcase_peers(void)
{
	TCase *tc = tcase_create("peers");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, fault_killed_peer_ends_everything_in_bounded_time);
	tcase_add_loop_test(tc, fault_peer_killed_before_it_answers_ends_what_waits, 0, 2);
	tcase_add_test(tc, fault_peer_that_comes_back_is_reached_again);
	tcase_add_test(tc, fault_target_that_listens_later_is_waited_for);
	tcase_add_test(tc, fault_nobody_listens_is_said_after_some_tries);
	tcase_add_test(tc, fault_address_that_cannot_be_reached_is_said_at_once);
	tcase_add_test(tc, fault_address_that_is_not_found_in_time_is_looked_for_again);
	tcase_add_test(tc, fault_address_that_nobody_has_ends_in_a_timeout_of_the_connection);
	tcase_add_test(tc, fault_peer_that_drops_what_it_has_accepted_is_asked_again);
	tcase_add_test(tc, fault_peer_that_goes_while_it_is_connected_is_said_to_be_gone);
	tcase_add_test(tc, fault_of_the_longest_reason_is_told_to_the_last_word);
	tcase_add_test(tc, fault_stopped_target_ends_in_a_timeout_of_the_connection);
	tcase_add_test(tc, fault_stopped_target_still_serves_what_is_known);
	return tc;
}

static TCase *tcase_sweep(void)
{
	TCase *tc = tcase_create("sweep");

	tcase_add_checked_fixture(tc, fixture_setup_impatient, fixture_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, fault_each_call_of_the_device_may_fail_once, 0, 3);
	tcase_add_test(tc, fault_each_allocation_may_fail_once);
	return tc;
}

UNIT_MAIN("ep_faults", tcase_requests, tcase_peers, tcase_sweep)

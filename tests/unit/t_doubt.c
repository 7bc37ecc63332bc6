/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection breaks, and the target knows what it has done: each operation is done once, and
 * is said to be done. The fake's packets are 4 KiB long.
 */
#include <stdatomic.h>
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"
#include "raw.h"

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
	want_idle(&p.a);
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

/* --- others ask ------------------------------------------------------------------------- */

static struct raw stranger;

/* What the pair's connection has to be asked about by. */
static struct mrf_hello own_hello(void)
{
	struct mrf_ep *ep = node_ep(&p.a);
	struct mrf_hello hello;

	mrf_lock_take(&ep->lock);
	hello = (struct mrf_hello){ .ticket = ep->peers[MRF_CONN_ACCESS].of[p.to]->target.ticket,
				    .lost = ep->peers[MRF_CONN_ACCESS].of[p.to]->conn->target_qpn };
	mrf_lock_release(&ep->lock);
	return hello;
}

/* Does the target say how far the connection came? */
static bool is_told(const struct mrf_hello *hello)
{
	uint8_t data[MRF_PROTO_HELLO_LEN];
	struct mrf_cm_event event;
	struct mrf_welcome welcome;

	raw_open(&stranger);
	event = raw_dial(&stranger, node_port(&p.b), data, mrf_hello_encode(hello, data));
	ck_assert_int_eq(event.type, MRF_CM_RESPONSE);
	ck_assert_int_eq(mrf_welcome_decode(event.data, event.len, &welcome), 0);
	raw_close(&stranger);
	return welcome.flags & MRF_WELCOME_STOPPED;
}

/* What an initiator shows one target is of no use at another one. */
START_TEST(ticket_that_another_target_has_seen_ends_no_connection)
{
	static struct raw other;
	struct mrf_hello hello, own;
	fi_addr_t to;

	open_all();
	fake_hold(false);
	raw_open(&other);
	to = raw_listen(&other, &p.a);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, 0, 1, &other), 0);
	hello = raw_take_request(&other);
	own = own_hello();
	hello.lost = own.lost;
	ck_assert(!is_told(&hello));
	hello.ticket = 0;
	ck_assert(!is_told(&hello));
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_uint_eq(fake_connects(), 1);
	ck_assert(is_told(&own));
	raw_close(&other);
	want_err(&p.a, &other, FI_ECONNREFUSED, NULL);
	close_all();
}
END_TEST

/* The ends of connections that a target remembers: one address fills only its part. */
START_TEST(ends_of_one_address_leave_those_of_another)
{
	struct mrf_hello own;
	unsigned i, stops;

	open_all();
	fake_hold(false);
	own = own_hello();
	fake_hang_up(node_agent(&p.b)->cq);
	want_soon(fake_stops() == 1);
	for (i = 0; i <= MRF_ENDS; i++) {
		stops = fake_stops();
		raw_open(&stranger);
		stranger.host = 9;
		raw_greet(&stranger, node_port(&p.b));
		raw_close(&stranger);
		want_soon(fake_stops() > stops);
	}
	ck_assert(is_told(&own));
	close_all();
}
END_TEST

/* --- the last data ----------------------------------------------------------------------- */

static struct mrf_vcq *of_target;

static atomic_bool ends;
static atomic_uint looks, early;

/* What has come is not seen before the connection ends, and then not at once. */
static bool is_late(const struct mrf_vcq *cq)
{
	if (cq != of_target || atomic_load(&looks) == 5)
		return false;
	atomic_fetch_add(&looks, atomic_load(&ends));
	atomic_fetch_add(&early, fake.stops);
	return true;
}

/* They are found when the connection has ended already: the peer has done nothing wrong. */
START_TEST(data_that_came_before_the_connection_ended_accuse_nobody)
{
	static struct unit_capture cap;
	const char *text;
	unsigned i;

	fixture_log();
	open_all();
	fake_hold(false);
	unit_capture(&cap);
	of_target = node_agent(&p.b)->cq;
	atomic_store(&looks, 0);
	atomic_store(&ends, false);
	fake_freeze(true);
	fake.is_late = is_late;
	fake_freeze(false);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fi_inject_writedata(p.a.ep, p.src, 8, i, p.to, p.base, p.key), 0);
	atomic_store(&ends, true);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(want_ok(&p.b, NULL).data, i);
	want_soon(!fake_live_of(FAKE_CREATE_QP));
	text = unit_captured(&cap);
	ck_assert_msg(!*text, "%s", text);
	must_close(&local->fid);
	pair_close(&p);
}
END_TEST

/* Its kernel may be carrying out a packet until then. */
START_TEST(a_queue_pair_tells_how_far_it_came_when_its_receives_have_come_back)
{
	open_all();
	fake_hold(false);
	of_target = node_agent(&p.b)->cq;
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	atomic_store(&looks, 0);
	atomic_store(&early, 0);
	atomic_store(&ends, true);
	fake_freeze(true);
	fake.is_late = is_late;
	fake_freeze(false);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	want_soon(fake_stops() == 1);
	ck_assert_uint_eq(atomic_load(&looks), 5);
	ck_assert_uint_eq(atomic_load(&early), 0);
	must_close(&local->fid);
	pair_close(&p);
}
END_TEST

/* Neither side finds fault with the other when its own queue pair takes no more receives. */
START_TEST(receive_that_cannot_be_posted_accuses_nobody)
{
	static struct unit_capture cap;
	uint32_t two = 2;
	const char *text;

	fixture_log();
	open_all();
	fake_hold(false);
	unit_capture(&cap);
	fake_fail(FAKE_POST_RECV, (unsigned)_i + 1, FI_EINVAL);
	ck_assert_int_eq(fi_atomic(p.a.ep, &two, 1, NULL, p.to, p.base + CELL, p.key, FI_UINT32,
				   FI_SUM, &two),
			 0);
	want_soon(fake_failed());
	want_idle(&p.a);
	text = unit_captured(&cap);
	ck_assert_msg(!strstr(text, "malformed"), "%s", text);
	fake_heal();
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
	tcase_add_test(tc, ticket_that_another_target_has_seen_ends_no_connection);
	tcase_add_test(tc, ends_of_one_address_leave_those_of_another);
	tcase_add_test(tc, a_queue_pair_tells_how_far_it_came_when_its_receives_have_come_back);
	tcase_add_test(tc, data_that_came_before_the_connection_ended_accuse_nobody);
	tcase_add_loop_test(tc, receive_that_cannot_be_posted_accuses_nobody, 0, 2);
	return tc;
}

UNIT_MAIN("doubt", tcase_doubt)

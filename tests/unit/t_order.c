/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_ORDER_SAW, SAR, RAS and WAS: messages and accesses of one endpoint are processed by the other in
 * the order in which they were started, if it was opened with these, and not otherwise. On the fake
 * fabric, which holds what goes over either connection.
 */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include "two_ends.h"
#include "proto/frame.h"

#define LEN 1000u
#define LONG (40u << 10)
#define N 16u
#define ROOM (N * LONG)
#define KEY 9
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define ALL (FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_RAS | FI_ORDER_WAS)

static uint8_t *there; /* of b, which a accesses */
static struct fid_mr *mr;
static uint64_t base;

static atomic_bool keeps; /* the fabric keeps b's notes */

static enum fake_fate keep_notes(uint8_t *msg, size_t *len, bool from_target)
{
	bool note = from_target && mrf_frame_type(msg, *len) == MRF_FRAME_NOTE;

	return note && atomic_load(&keeps) ? FAKE_KEEP : FAKE_DELIVER;
}

static void open_with(uint64_t order)
{
	ends_open(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS, .order = order },
		  ROOM);
	there = pages(ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)there : 0;
	atomic_store(&keeps, false);
	fake.on_send = keep_notes;
}

static void end(void)
{
	fake_hold(false);
	fake_hold_frames(false);
	a_close();
	must_close(&mr->fid);
	b_close();
}

/* --- operations, by number ------------------------------------------------------------------- */

static uint8_t *at(unsigned i)
{
	return out + i * LONG;
}

static void send_len(unsigned i, size_t len)
{
	ck_assert_int_eq(fi_send(a.ep, at(i), len, NULL, to, at(i)), 0);
}

static void send_at(unsigned i)
{
	send_len(i, LEN);
}

static void write_at(unsigned i)
{
	ck_assert_int_eq(fi_write(a.ep, at(i), LEN, NULL, to, base + i * LONG, KEY, at(i)), 0);
}

static void read_at(unsigned i)
{
	ck_assert_int_eq(fi_read(a.ep, at(i), LEN, NULL, to, base + i * LONG, KEY, at(i)), 0);
}

static uint64_t one = 1;

static void atomic_at(unsigned i)
{
	ck_assert_int_eq(
		fi_atomic(a.ep, &one, 1, NULL, to, base + i * LONG, KEY, FI_UINT64, FI_SUM, at(i)),
		0);
}

typedef void starts(unsigned i);

static void recv_at(unsigned i)
{
	ck_assert_int_eq(fi_recv(b.ep, in + i * LONG, LONG, NULL, FI_ADDR_UNSPEC, in + i * LONG),
			 0);
}

static void want_done(unsigned i)
{
	want_ok(&a, at(i));
}

static void want_got(unsigned i, size_t len)
{
	ck_assert_uint_eq(want_ok(&b, in + i * LONG).len, len);
	ck_assert_int_eq(memcmp(in + i * LONG, at(i), len), 0);
}

static bool is_written(unsigned i)
{
	uint8_t now[LEN];

	fake_copy(now, there + i * LONG, LEN);
	return !memcmp(now, at(i), LEN);
}

/* Both connections are there, and nothing is under way. */
static void begin(void)
{
	recv_at(0);
	send_at(0);
	want_got(0, LEN);
	want_done(0);
	write_at(0);
	want_done(0);
}

/* --- sends after accesses --------------------------------------------------------------------- */

static const struct {
	starts *first;
	uint64_t order;
	size_t len;
} sends[] = { { write_at, FI_ORDER_SAW, LEN },	{ write_at, FI_ORDER_SAW, LONG },
	      { read_at, FI_ORDER_SAR, LEN },	{ read_at, FI_ORDER_SAR, LONG },
	      { atomic_at, FI_ORDER_SAW, LEN }, { write_at, ALL, LEN },
	      { write_at, ALL, LONG } };
#define SENDS ((int)MRF_ARRAY_SIZE(sends))

START_TEST(a_send_comes_after_the_accesses_before_it)
{
	size_t len = sends[_i].len;

	open_with(sends[_i].order);
	begin();
	recv_at(2);
	fake_hold(true);
	sends[_i].first(1);
	send_len(2, len);
	want_none(&b);
	ck_assert_uint_eq(offers(), 0);
	fake_hold(false);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_got(2, len);
	want_idle(&a);
	end();
}
END_TEST

/* Two connections: what was started later comes first. */
START_TEST(without_the_order_a_send_overtakes_accesses)
{
	open_with(_i ? FI_ORDER_RAS | FI_ORDER_WAS : 0);
	begin();
	recv_at(2);
	fake_hold(true);
	write_at(1);
	send_at(2);
	want_got(2, LEN);
	want_done(2);
	fake_hold(false);
	want_done(1);
	end();
}
END_TEST

/* --- accesses after sends --------------------------------------------------------------------- */

static const struct {
	starts *later;
	uint64_t order;
} accesses[] = { { write_at, FI_ORDER_WAS },
		 { read_at, FI_ORDER_RAS },
		 { atomic_at, FI_ORDER_WAS },
		 { write_at, ALL },
		 { read_at, ALL } };
#define ACCESSES ((int)MRF_ARRAY_SIZE(accesses))

/* The device has acknowledged the message; b takes it in when it polls. */
START_TEST(an_access_comes_after_the_messages_before_it)
{
	open_with(accesses[_i].order);
	begin();
	recv_at(1);
	atomic_store(&keeps, true);
	fake_hold_frames(true);
	send_at(1);
	accesses[_i].later(2);
	want_none(&a);
	ck_assert(!is_written(2));
	fake_hold_frames(false);
	want_got(1, LEN);
	want_none(&a);
	ck_assert_uint_eq(fake_queued(), 0);
	atomic_store(&keeps, false);
	fake_deliver();
	want_done(1);
	want_done(2);
	want_idle(&a);
	end();
}
END_TEST

/* No receive takes it: it is enough that b has it, or b's application might wait for the write. */
START_TEST(an_access_waits_for_no_receive)
{
	static const size_t lens[] = { LEN, LONG };
	size_t len = lens[_i % 2];

	open_with(_i / 2 ? ALL : FI_ORDER_WAS);
	begin();
	send_len(1, len);
	write_at(2);
	want_soon((fi_cq_read(b.cq, NULL, 0), is_written(2)));
	if (len == LONG)
		want_done(2);
	recv_at(1);
	want_got(1, len);
	want_ok(&a, NULL);
	if (len != LONG)
		want_ok(&a, NULL);
	want_idle(&a);
	end();
}
END_TEST

START_TEST(without_the_order_an_access_overtakes_messages)
{
	open_with(_i ? FI_ORDER_SAW | FI_ORDER_SAR : 0);
	begin();
	recv_at(1);
	fake_hold_frames(true);
	send_at(1);
	write_at(2);
	want_done(2);
	ck_assert(is_written(2));
	fake_hold_frames(false);
	want_done(1);
	want_got(1, LEN);
	end();
}
END_TEST

/* --- many --------------------------------------------------------------------------------------- */

static bool has_long_ones(unsigned round)
{
	return round % 5 == 4;
}

static void start_all(unsigned round)
{
	unsigned i;

	for (i = 0; i < N; i += 2) {
		recv_at(i);
		fill(at(i + 1), LEN, round + i);
		fake_hold(round % 2);
		fake_hold_frames(round % 3);
		send_len(i, i % 4 && has_long_ones(round) ? LONG : LEN);
		write_at(i + 1);
	}
	fake_hold(false);
	fake_hold_frames(false);
}

/* A receive of a long message may complete later than that of a short one behind it. */
START_TEST(all_come_in_their_order)
{
	unsigned i, round;

	open_with(ALL);
	for (round = 0; round < 20; round++) {
		start_all(round);
		for (i = 0; i < N; i += 2) {
			want_ok(&b, has_long_ones(round) ? NULL : in + i * LONG);
			ck_assert(has_long_ones(round) || !i || is_written(i - 1));
		}
		for (i = 0; i < N; i++)
			want_ok(&a, NULL);
		for (i = 0; i < N; i += 2) {
			ck_assert(is_written(i + 1));
			ck_assert_int_eq(memcmp(in + i * LONG, at(i), LEN), 0);
		}
	}
	want_idle(&a);
	end();
}
END_TEST

/* One of the connections is lost while the other one waits. */
START_TEST(the_order_holds_when_a_connection_is_lost)
{
	open_with(ALL);
	begin();
	recv_at(1);
	recv_at(3);
	if (_i)
		fake_break(1, 1, MRF_WC_REFUSED, false);
	else
		fake_break_frame(1, 1, MRF_WC_TIMEOUT, false);
	send_at(1);
	write_at(2);
	send_at(3);
	want_got(1, LEN);
	want_got(3, LEN);
	ck_assert(is_written(2));
	want_done(1);
	want_done(2);
	want_done(3);
	ck_assert_uint_ge(fake_connects(), 3);
	want_idle(&a);
	end();
}
END_TEST

/* What fails has ended, and holds nothing up. */
START_TEST(what_fails_holds_nothing_up)
{
	open_with(ALL);
	begin();
	recv_at(2);
	ck_assert_int_eq(fi_write(a.ep, at(1), LEN, NULL, to, base + ROOM, KEY, at(1)), 0);
	send_at(2);
	want_err(&a, at(1), FI_EACCES, NULL);
	want_done(2);
	want_got(2, LEN);
	want_idle(&a);
	end();
}
END_TEST

/* Nothing is made for an order that nothing has to keep. */
START_TEST(accesses_alone_need_no_line)
{
	open_with(ALL);
	write_at(1);
	want_done(1);
	read_at(2);
	want_done(2);
	ck_assert_uint_eq(fake_connects(), 1);
	ck_assert_ptr_null(node_ep(&a)->peers[MRF_CONN_LINE].of);
	end();
}
END_TEST

/* --- what is in force --------------------------------------------------------------------------- */

START_TEST(who_does_not_ask_keeps_the_short_ways)
{
	const struct mrf_ep *ep;

	open_with(_i ? ALL : 0);
	ep = node_ep(&a);
	ck_assert_uint_eq(ep->orders, _i ? ALL : 0);
	ck_assert(_i ? !ep->short_send : ep->short_send > 0);
	ck_assert(_i ? !ep->short_max[MRF_OP_WRITE] : ep->short_max[MRF_OP_WRITE] > 0);
	ck_assert(_i ? !ep->short_max[MRF_OP_READ] : ep->short_max[MRF_OP_READ] > 0);
	ck_assert_int_eq(ep->short_atomic[0], !_i);
	end();
}
END_TEST

static TCase *tcase_order(void)
{
	TCase *tc = tcase_create("order");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_send_comes_after_the_accesses_before_it, 0, SENDS);
	tcase_add_loop_test(tc, without_the_order_a_send_overtakes_accesses, 0, 2);
	tcase_add_loop_test(tc, an_access_comes_after_the_messages_before_it, 0, ACCESSES);
	tcase_add_loop_test(tc, an_access_waits_for_no_receive, 0, 4);
	tcase_add_loop_test(tc, without_the_order_an_access_overtakes_messages, 0, 2);
	tcase_add_test(tc, all_come_in_their_order);
	tcase_add_loop_test(tc, the_order_holds_when_a_connection_is_lost, 0, 2);
	tcase_add_test(tc, what_fails_holds_nothing_up);
	tcase_add_test(tc, accesses_alone_need_no_line);
	tcase_add_loop_test(tc, who_does_not_ask_keeps_the_short_ways, 0, 2);
	return tc;
}

UNIT_MAIN("order of messages and accesses", tcase_order)

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements of 8 bytes for which the device has no operation, changed by the initiator with
 * compare-and-swaps while its operation is alone, and by the peer's agent otherwise.
 */
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"
#include "loop/agent.h"

#define AT 4096u

static struct pair p;
static uint64_t operand, result;

static void swap_open(void)
{
	pair_open(&p, PLAIN);
	memset(p.dst + AT, 0, 64);
	/* The connection is there, and what is known of the key. */
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
}

static uint64_t word(size_t at)
{
	uint64_t value;

	fake_copy(&value, p.dst + at, sizeof(value));
	return value;
}

static void word_set(size_t at, uint64_t value)
{
	fake_copy(p.dst + at, &value, sizeof(value));
}

static void atomic_call(size_t at, enum fi_op op, uint64_t value)
{
	operand = value;
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &operand, 1, NULL, &result, NULL, p.to,
					 p.base + at, p.key, FI_UINT64, op, &operand),
			 0);
}

/* An operation by itself; what it has found. */
static uint64_t fetch(size_t at, enum fi_op op, uint64_t value)
{
	result = 0x1111;
	atomic_call(at, op, value);
	want_ok(&p.a, &operand);
	return result;
}

static unsigned swaps_since(size_t log)
{
	unsigned n = 0;

	for (; log < fake_nlog(); log++)
		n += fake.log[log].op == MRF_VWR_CMP_SWP;
	return n;
}

START_TEST(swap_that_guesses_right_is_one_operation_of_the_device)
{
	size_t log;
	unsigned i;

	swap_open();
	/* 0 is the first guess. */
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT, FI_BOR, 6), 0);
	ck_assert_uint_eq(swaps_since(log), 1);
	/* What was left there is the next. */
	for (i = 0; i < 10; i++) {
		log = fake_nlog();
		ck_assert_uint_eq(fetch(AT, FI_BXOR, 1), 6 + i % 2);
		ck_assert_uint_eq(swaps_since(log), 1);
	}
	ck_assert_uint_eq(word(AT), 6);
	/* Nothing to be stored: what comes back is still what was there. */
	ck_assert_uint_eq(fetch(AT, FI_MAX, 3), 6);
	ck_assert_uint_eq(word(AT), 6);
	ck_assert_uint_eq(fake.loops, 0);
	pair_close(&p);
}
END_TEST

START_TEST(swap_that_guesses_wrong_is_tried_with_what_it_found)
{
	size_t log;

	swap_open();
	word_set(AT, 40);
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT, FI_PROD, 2), 40);
	ck_assert_uint_eq(swaps_since(log), 2);
	ck_assert_uint_eq(word(AT), 80);
	/* Another word is another guess, and what others do shows. */
	ck_assert_uint_eq(fetch(AT + 8, FI_ATOMIC_WRITE, 5), 0);
	word_set(AT + 8, 9);
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT + 8, FI_MIN, 7), 9);
	ck_assert_uint_eq(swaps_since(log), 2);
	ck_assert_uint_eq(word(AT + 8), 7);
	ck_assert_uint_eq(fake.loops, 0);
	pair_close(&p);
}
END_TEST

static int meddle;

/* Just before a peer's swap, another one adds 100. */
static void add_before(enum mrf_vwr_op op, void *remote)
{
	if (op == MRF_VWR_CMP_SWP && remote == p.dst + AT && meddle-- > 0)
		*(uint64_t *)remote += 100;
}

START_TEST(swap_that_others_spoil_is_left_to_the_agent)
{
	size_t log;

	swap_open();
	fake.on_atomic = add_before;
	meddle = 2;
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT, FI_BOR, 1), 200);
	ck_assert_uint_eq(swaps_since(log), 3);
	ck_assert_uint_eq(word(AT), 201);
	ck_assert_uint_eq(fake.loops, 0);
	meddle = 3;
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT, FI_BOR, 2), 501);
	ck_assert_uint_eq(swaps_since(log), 3);
	ck_assert_uint_eq(word(AT), 503);
	ck_assert_uint_gt(fake.loops, 0);
	pair_close(&p);
}
END_TEST

START_TEST(swap_is_for_an_operation_that_is_alone)
{
	size_t log;

	swap_open();
	fake_hold(true);
	pair_write(&p, 0, 8);
	log = fake_nlog();
	atomic_call(AT, FI_BOR, 1);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_ok(&p.a, &operand);
	ck_assert_uint_eq(swaps_since(log), 0);
	ck_assert_uint_gt(fake.loops, 0);
	ck_assert_uint_eq(word(AT), 1);
	pair_close(&p);
}
END_TEST

/* The first guess is wrong, so that what is behind must not overtake the second. */
START_TEST(swap_keeps_the_order_of_what_is_behind_it)
{
	uint64_t value = 7, one = 1;
	unsigned native;

	for (native = 0; native < 2; native++) {
		swap_open();
		word_set(AT, 40);
		fake_hold(true);
		atomic_call(AT, FI_PROD, 2);
		if (native)
			ck_assert_int_eq(fi_atomic(p.a.ep, &one, 1, NULL, p.to, p.base + AT, p.key,
						   FI_UINT64, FI_SUM, &value),
					 0);
		else
			ck_assert_int_eq(
				fi_write(p.a.ep, &value, 8, NULL, p.to, p.base + AT, p.key, &value),
				0);
		ck_assert_uint_eq(fake_queued(), 1);
		fake_hold(false);
		want_ok(&p.a, &operand);
		want_ok(&p.a, &value);
		ck_assert_uint_eq(result, 40);
		ck_assert_uint_eq(word(AT), native ? 81 : 7);
		pair_close(&p);
	}
}
END_TEST

/* Nobody reads the completion queue while the second try is due. */
START_TEST(swap_goes_on_though_the_application_does_not_look)
{
	uint64_t value = 2;

	swap_open();
	word_set(AT, 40);
	fake_hold(true);
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, &value, 1, p.to, p.base + AT, p.key, FI_UINT64, FI_PROD),
		0);
	fake_hold(false);
	want_soon(word(AT) == 80);
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(swap_that_is_lost_is_never_repeated)
{
	bool ran = _i;

	swap_open();
	fake_break(1, 1, MRF_WC_TIMEOUT, ran);
	atomic_call(AT, FI_BOR, 1);
	want_err(&p.a, &operand, FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(word(AT), ran);
	/* The second try of one; the first has changed nothing. */
	word_set(AT, 4);
	ck_assert_uint_eq(fetch(AT + 8, FI_BOR, 1), 0);
	fake_break(2, 1, MRF_WC_TIMEOUT, ran);
	atomic_call(AT, FI_BOR, 1);
	want_err(&p.a, &operand, FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(word(AT), 4u + ran);
	ck_assert_uint_eq(fetch(AT, FI_BOR, 8), 4u + ran);
	ck_assert_uint_eq(word(AT), 12u + ran);
	pair_close(&p);
}
END_TEST

static void base_call(enum fi_op op, uint64_t value)
{
	operand = value;
	ck_assert_int_eq(fi_atomic(p.a.ep, &operand, 1, NULL, p.to, p.base + AT, p.key, FI_UINT64,
				   op, &operand),
			 0);
}

/* The peer can say so: it is done again. _i: the second try, which knows what the word holds. */
START_TEST(swap_in_doubt_that_never_ran_is_done_once)
{
	fake.packets = true;
	swap_open();
	if (_i)
		ck_assert_uint_eq(fetch(AT, FI_ATOMIC_WRITE, 40), 0);
	else
		word_set(AT, 40);
	fake_hold(true);
	base_call(FI_PROD, 2);
	ck_assert_uint_eq(fake_queued(), 1);
	/* The peer's agent learns that the device has put its queue pair into error. */
	fake_hang_up(node_agent(&p.b)->cq);
	want_soon(fake_connects() == 2);
	fake_hold(false);
	want_ok(&p.a, &operand);
	ck_assert_uint_eq(word(AT), 80);
	pair_close(&p);
}
END_TEST

/* The peer knows that it was carried out, not whether the word held what was guessed. */
START_TEST(swap_in_doubt_that_ran_is_not_repeated)
{
	bool guessed = _i & 1, fetches = _i & 2;

	fake.packets = true;
	swap_open();
	ck_assert_uint_eq(fetch(AT, FI_ATOMIC_WRITE, 40), 0);
	if (!guessed)
		word_set(AT, 30);
	fake_hold(true);
	if (fetches)
		atomic_call(AT, FI_PROD, 2);
	else
		base_call(FI_PROD, 2);
	fake_break(1, 1, MRF_WC_FLUSHED, true);
	fake_hold(false);
	want_err(&p.a, &operand, FI_ECONNRESET, "may or may not");
	ck_assert_uint_eq(word(AT), guessed ? 80 : 30);
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
	pair_close(&p);
}
END_TEST

START_TEST(swap_that_is_refused_says_why_and_harms_nothing)
{
	swap_open();
	ck_assert_uint_eq(fetch(AT, FI_BOR, 1), 0);
	must_close(&p.mr->fid);
	atomic_call(AT, FI_BOR, 2);
	want_err(&p.a, &operand, FI_EKEYREJECTED, "closed");
	ck_assert_uint_eq(word(AT), 1);
	pair_reg(&p, FI_REMOTE_READ);
	atomic_call(AT, FI_BOR, 2);
	want_err(&p.a, &operand, FI_EACCES, "FI_REMOTE_WRITE");
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	ck_assert_uint_eq(fetch(AT, FI_BOR, 2), 1);
	ck_assert_uint_eq(word(AT), 3);
	pair_close(&p);
}
END_TEST

/* It is under way: it cannot be canceled, and its endpoint can be closed. */
START_TEST(swap_in_flight_is_not_canceled_and_ends_with_its_endpoint)
{
	swap_open();
	fake_hold(true);
	atomic_call(AT, FI_BOR, 1);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &operand), -FI_ENOENT);
	fake_hold(false);
	want_ok(&p.a, &operand);
	word_set(AT, 4);
	fake_hold(true);
	atomic_call(AT, FI_BOR, 2);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	fake_hold(false);
	ck_assert_uint_eq(word(AT), 4);
	pair_close(&p);
}
END_TEST

/* An operation that has succeeded on a connection that breaks is done. */
START_TEST(swap_that_succeeded_before_its_connection_broke_is_done)
{
	size_t log;

	swap_open();
	fake_hold(true);
	atomic_call(AT, FI_BOR, 1);
	pair_write(&p, 0, 8);
	fake_break(2, 1, MRF_WC_REFUSED, false);
	fake_hold(false);
	want_ok(&p.a, &operand);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_uint_eq(word(AT), 1);
	log = fake_nlog();
	ck_assert_uint_eq(fetch(AT, FI_BXOR, 3), 1);
	ck_assert_uint_eq(swaps_since(log), 1);
	pair_close(&p);
}
END_TEST

/* Elements that are smaller, larger, several, or lie across words are the agent's. */
START_TEST(swap_is_for_one_element_of_8_bytes_in_a_word)
{
	static const struct {
		enum fi_datatype datatype;
		size_t count, at;
		bool swap;
	} rows[] = {
		{ FI_UINT64, 1, 0, true },	 { FI_INT64, 1, 8, true },
		{ FI_DOUBLE, 1, 0, true },	 { FI_UINT32, 1, 0, false },
		{ FI_UINT32, 2, 0, false },	 { FI_UINT8, 8, 0, false },
		{ FI_UINT64, 1, 4, false },	 { FI_UINT64, 2, 0, false },
		{ FI_LONG_DOUBLE, 1, 0, false },
	};
	static uint8_t from[64], to[64];
	size_t log;
	unsigned i;

	swap_open();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned loops = fake.loops;

		log = fake_nlog();
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, from, rows[i].count, NULL, to, NULL, p.to,
						 p.base + AT + rows[i].at, p.key, rows[i].datatype,
						 FI_MAX, &operand),
				 0);
		want_ok(&p.a, &operand);
		ck_assert_msg((swaps_since(log) > 0) == rows[i].swap &&
				      (fake.loops > loops) == !rows[i].swap,
			      "row %u", i);
	}
	pair_close(&p);
}
END_TEST

static TCase *tcase_swap(void)
{
	TCase *tc = tcase_create("swap");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_test(tc, swap_that_guesses_right_is_one_operation_of_the_device);
	tcase_add_test(tc, swap_that_guesses_wrong_is_tried_with_what_it_found);
	tcase_add_test(tc, swap_that_others_spoil_is_left_to_the_agent);
	tcase_add_test(tc, swap_is_for_an_operation_that_is_alone);
	tcase_add_test(tc, swap_keeps_the_order_of_what_is_behind_it);
	tcase_add_test(tc, swap_goes_on_though_the_application_does_not_look);
	tcase_add_loop_test(tc, swap_that_is_lost_is_never_repeated, 0, 2);
	tcase_add_loop_test(tc, swap_in_doubt_that_never_ran_is_done_once, 0, 2);
	tcase_add_loop_test(tc, swap_in_doubt_that_ran_is_not_repeated, 0, 4);
	tcase_add_test(tc, swap_that_is_refused_says_why_and_harms_nothing);
	tcase_add_test(tc, swap_in_flight_is_not_canceled_and_ends_with_its_endpoint);
	tcase_add_test(tc, swap_that_succeeded_before_its_connection_broke_is_done);
	tcase_add_test(tc, swap_is_for_one_element_of_8_bytes_in_a_word);
	return tc;
}

UNIT_MAIN("swap", tcase_swap)

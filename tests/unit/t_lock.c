/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks are checked in builds with --enable-lockrank only: this test has its own copy. */
#include <pthread.h>
#include "unit.h"
#include "base/compiler.h"
#include "base/maps.h"
#include "base/user.h"
#include "base/gate.h"
/* Of the library. */
#include "aborts.h"

#ifndef MRF_LOCKRANK
#define MRF_LOCKRANK 1
#endif
#include "base/lock.c"

static struct mrf_lock low, mid, mid2, high;

static void setup(void)
{
	mrf_lock_init(&low, MRF_RANK_EP);
	mrf_lock_init(&mid, MRF_RANK_MR);
	mrf_lock_init(&mid2, MRF_RANK_MR);
	mrf_lock_init(&high, MRF_RANK_LOG);
}

static void teardown(void)
{
	mrf_lock_fini(&low);
	mrf_lock_fini(&mid);
	mrf_lock_fini(&mid2);
	mrf_lock_fini(&high);
}

static void upwards(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_take(&high);
	mrf_lock_release(&high);
	mrf_lock_release(&mid);
	mrf_lock_release(&low);
}

static void downwards(void)
{
	mrf_lock_take(&mid);
	mrf_lock_take(&low);
}

static void same_rank(void)
{
	mrf_lock_take(&mid);
	mrf_lock_take(&mid2);
}

static void not_held(void)
{
	mrf_lock_take(&low);
	mrf_lock_release(&mid);
}

/* The middle one is let go first: what is left must still be known. */
static void middle_first(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_take(&high);
	mrf_lock_release(&mid);
	mrf_lock_release(&high);
	mrf_lock_take(&mid);
	mrf_lock_release(&low);
	mrf_lock_take(&high);
}

static void middle_first_then_wrong(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_release(&low);
	mrf_lock_take(&low);
}

START_TEST(lock_in_rank_order_is_fine_over_and_over)
{
	int i;

	for (i = 0; i < 100; i++)
		upwards();
	ck_assert(!aborts(upwards));
	ck_assert(!aborts(middle_first));
}
END_TEST

START_TEST(lock_out_of_rank_order_aborts)
{
	ck_assert(aborts(downwards));
	ck_assert(aborts(same_rank));
	ck_assert(aborts(middle_first_then_wrong));
}
END_TEST

START_TEST(lock_release_of_one_not_held_aborts)
{
	ck_assert(aborts(not_held));
}
END_TEST

static void held_both(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_held(&low);
	mrf_lock_held(&mid);
	mrf_lock_release(&low);
	mrf_lock_held(&mid);
}

static void other_held(void)
{
	mrf_lock_take(&mid2);
	mrf_lock_held(&mid);
}

static void held_no_more(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_release(&low);
	mrf_lock_held(&low);
}

START_TEST(lock_held_aborts_unless_this_very_lock_is_held)
{
	ck_assert(!aborts(held_both));
	ck_assert(aborts(other_held));
	ck_assert(aborts(held_no_more));
}
END_TEST

static void slow_under_an_endpoint(void)
{
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_slow_call();
}

static void slow_under_others(void)
{
	mrf_slow_call();
	mrf_lock_take(&low);
	mrf_lock_take(&mid);
	mrf_lock_release(&low);
	mrf_slow_call();
}

START_TEST(lock_of_an_endpoint_is_not_held_over_slow_calls)
{
	ck_assert(aborts(slow_under_an_endpoint));
	ck_assert(!aborts(slow_under_others));
}
END_TEST

static char byte;

static void read_memory(void)
{
	const struct iovec from = { .iov_base = &byte, .iov_len = 1 };
	char to;

	if (mrf_user_get(&to, &from, 1))
		_exit(1);
}

static void write_memory(void)
{
	const struct iovec to = { .iov_base = &byte, .iov_len = 1 };

	if (mrf_user_put(&to, 1, "", true))
		_exit(1);
}

static void read_maps(void)
{
	FILE *maps = mrf_maps_open();

	if (!maps)
		_exit(1);
	fclose(maps);
}

static void call_rdma_cm(void)
{
	mrf_gate_enter(MRF_GATE_RDMACM);
	mrf_gate_leave(MRF_GATE_RDMACM);
}

static void (*const slow[])(void) = { read_memory, write_memory, read_maps, call_rdma_cm };
static int which;

static void one_under_an_endpoint(void)
{
	mrf_lock_take(&low);
	slow[which]();
}

/* Of the library, which has the check only if it was built so. */
START_TEST(lock_of_an_endpoint_is_missed_by_what_is_slow)
{
	which = _i;
	ck_assert(!aborts(slow[which]));
	ck_assert(aborts(one_under_an_endpoint) == LIBRARY_CHECKS);
}
END_TEST

static long counter;

static void *count_up(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 20000; i++) {
		mrf_lock_take(&mid);
		counter++;
		mrf_lock_release(&mid);
	}
	return NULL;
}

START_TEST(lock_lets_one_thread_in_at_a_time)
{
	pthread_t threads[4];
	int i;

	counter = 0;
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, NULL), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(counter, 4 * 20000);
}
END_TEST

static void *take_low(void *arg)
{
	(void)arg;
	mrf_lock_take(&low);
	mrf_lock_release(&low);
	return NULL;
}

/* What one thread holds says nothing about another: else this would abort. */
START_TEST(lock_ranks_are_kept_by_thread)
{
	pthread_t thread;

	mrf_lock_take(&high);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_low, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	mrf_lock_release(&high);
}
END_TEST

static TCase *tcase_lock(void)
{
	TCase *tcase = tcase_create("lock");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, lock_in_rank_order_is_fine_over_and_over);
	tcase_add_test(tcase, lock_out_of_rank_order_aborts);
	tcase_add_test(tcase, lock_release_of_one_not_held_aborts);
	tcase_add_test(tcase, lock_held_aborts_unless_this_very_lock_is_held);
	tcase_add_test(tcase, lock_of_an_endpoint_is_not_held_over_slow_calls);
	tcase_add_loop_test(tcase, lock_of_an_endpoint_is_missed_by_what_is_slow, 0,
			    (int)MRF_ARRAY_SIZE(slow));
	tcase_add_test(tcase, lock_lets_one_thread_in_at_a_time);
	tcase_add_test(tcase, lock_ranks_are_kept_by_thread);
	return tcase;
}

UNIT_MAIN("lock", tcase_lock)

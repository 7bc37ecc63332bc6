/* SPDX-License-Identifier: BSD-2-Clause */
/* The short-section mutex: exclusion, sleeping and waking. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "base/lock.h"
#include "unit.h"

#define THREADS 4
#define ROUNDS 100000
#define NAP_MS 200

static struct mrf_lock mutex_lock;
static unsigned long count;

static void *counter(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		mrf_lock_take(&mutex_lock);
		count++;
		mrf_lock_release(&mutex_lock);
	}
	return arg;
}

START_TEST(mutex_lets_one_in_at_a_time)
{
	pthread_t thread[THREADS];
	int i;

	mrf_lock_init(&mutex_lock, MRF_RANK_MR);
	count = 0;
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, counter, NULL), 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ck_assert_uint_eq(count, (unsigned long)THREADS * ROUNDS);
	mrf_lock_fini(&mutex_lock);
}
END_TEST

/* Processor time that this thread has used, in ms. */
static long used_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *late(void *arg)
{
	long before = used_ms();

	errno = 77;
	mrf_lock_take(&mutex_lock);
	count++;
	mrf_lock_release(&mutex_lock);
	return errno == 77 && used_ms() - before < NAP_MS / 10 ? arg : NULL;
}

/* All sleep while it is held, none gets in, each is woken, and errno is left alone. */
START_TEST(mutex_wakes_everyone_who_slept)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000 };
	pthread_t thread[THREADS];
	void *ret;
	int i;

	mrf_lock_init(&mutex_lock, MRF_RANK_MR);
	count = 0;
	mrf_lock_take(&mutex_lock);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, late, &mutex_lock), 0);
	nanosleep(&nap, NULL);
	ck_assert_uint_eq(count, 0);
	mrf_lock_release(&mutex_lock);
	for (i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &ret), 0);
		ck_assert_ptr_nonnull(ret);
	}
	ck_assert_uint_eq(count, THREADS);
	mrf_lock_fini(&mutex_lock);
}
END_TEST

static TCase *mutex(void)
{
	TCase *tc = tcase_create("mutex");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, mutex_lets_one_in_at_a_time);
	tcase_add_test(tc, mutex_wakes_everyone_who_slept);
	return tc;
}

UNIT_MAIN("mutex", mutex)

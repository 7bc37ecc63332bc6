/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads that find their own buffers in the cache do not wait for each other. Wall
 * clock, which means little on a machine that has other things to do: so the best of many
 * short runs counts, and it is compared with what two threads that share nothing get from
 * this machine meanwhile. Only what a lock would do makes the test fail.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "buf/cache.h"
#include "mr/demand/backs.h"
#include "mr_fixture.h"

#define BUFFERS 16u /* of each thread */
#define HITS 5000u  /* a run */
#define LEAST 100u  /* runs: else a slow one of one thread would stand */
#define ENOUGH 1.8
#define SERIAL 0.7 /* of threads that share nothing: a shared lock or line leaves 0.6 at most */
#define MOST_MS 5000
#define STACK (8u << 20)

static struct mrf_cache *cache;
static atomic_uint ready;
static unsigned runners;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void use(size_t page)
{
	struct mrf_cached *entry;

	if (mrf_cache_get(cache, mem + page * PAGE, PAGE, true, &entry))
		abort();
	mrf_cache_put(entry);
}

/* As much work as a hit, or more, in memory of the caller's own. */
static void use_own(size_t page)
{
	volatile unsigned own = 0;
	unsigned i;

	for (i = 0; i < 50; i++)
		own += (unsigned)page;
	if (own == UINT32_MAX)
		abort();
}

static void (*work)(size_t page); /* constant while threads run */

static void begin_together(void)
{
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < runners)
		sched_yield();
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* The nth of the processors that this thread may use, and no other. */
static void stay_on(unsigned n)
{
	cpu_set_t may, one;
	unsigned cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(may), &may), 0);
	while (!CPU_ISSET(cpu, &may) || n--)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

struct turn {
	unsigned nth; /* thread */
	double start;
	double end;
};

static void *take_turn(void *arg)
{
	struct turn *turn = arg;
	unsigned i;

	stay_on(turn->nth);
	begin_together();
	turn->start = now_ns();
	for (i = 0; i < HITS; i++)
		work(turn->nth * BUFFERS + i % BUFFERS);
	turn->end = now_ns();
	return NULL;
}

/* Stacks as far apart as most threads' are, or as transparent huge pages want them. */
static void begin_thread(pthread_t *thread, struct turn *turn)
{
	static _Alignas(4096) char stacks[2][STACK];
	pthread_attr_t attr;

	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attr, stacks[turn->nth], STACK), 0);
	ck_assert_int_eq(pthread_create(thread, &attr, take_turn, turn), 0);
	pthread_attr_destroy(&attr);
}

/* From when the first one begins until the last one is done. */
static double time_of(unsigned threads)
{
	struct turn turn[2] = { { .nth = 0 }, { .nth = 1 } };
	double start = 0, end = 0;
	pthread_t thread[2];
	unsigned i;

	atomic_store(&ready, 0);
	runners = threads;
	for (i = 0; i < threads; i++)
		begin_thread(&thread[i], &turn[i]);
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		start = i ? mrf_min(start, turn[i].start) : turn[i].start;
		end = mrf_max(end, turn[i].end);
	}
	return end - start;
}

static double best_scale(void (*what)(size_t page))
{
	long long end = mrf_now_ms() + MOST_MS;
	double one = 1e18, two = 1e18;
	unsigned runs = 0;

	work = what;
	do {
		double t1 = time_of(1), t2 = time_of(2);

		one = t1 < one ? t1 : one;
		two = t2 < two ? t2 : two;
	} while (++runs < LEAST || (2 * one / two < ENOUGH && mrf_now_ms() < end));
	return 2 * one / two;
}

START_TEST(cache_scale_two_threads_do_not_wait_for_each_other)
{
	double scale, apart;
	unsigned tries = 4;
	size_t page;

	env_open(0);
	cache = mrf_cache_new(&env.space);
	memset(mem, 1, 2 * BUFFERS * PAGE);
	if (processors() > 1 && mrf_mr_backs_monitored(env.space.backs)) {
		for (page = 0; page < 2 * BUFFERS; page++)
			use(page);
		/* What else runs here comes and goes. */
		do {
			scale = best_scale(use);
			apart = best_scale(use_own);
		} while (scale < SERIAL * apart && --tries);
		printf("hits of two threads: %.2f times those of one (sharing nothing: %.2f)\n",
		       scale, apart);
		ck_assert_msg(scale >= SERIAL * apart, "%.2f times, not %.2f", scale, apart);
	}
	mrf_cache_free(cache);
	env_close();
}
END_TEST

static TCase *threads(void)
{
	TCase *tc = tcase_create("threads");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, cache_scale_two_threads_do_not_wait_for_each_other);
	return tc;
}

UNIT_MAIN("cache_scale", threads)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's timers: all that are due run in one turn, up to its bound. */
#include <netinet/in.h>
#include "contract/budget.h"
#include "ep_fixture.h"
#include "loop/agent_calls.h"

#define MANY 128

static struct mrf_agent agent;
static struct mrf_vdev *vdev;
static struct mrf_timer timers[MANY];
static unsigned turns, fired, fired_turns[MANY], order[MANY];
static int64_t ended[4 * MANY]; /* us: when each of the last turns did */
static atomic_uint done;
static atomic_bool over_once;

static bool serve(struct mrf_agent *a)
{
	(void)a;
	return false;
}

static void over(struct mrf_agent *a)
{
	(void)a;
	ended[turns++ % MRF_ARRAY_SIZE(ended)] = mrf_now_us();
	over_once = true;
}

static const struct mrf_agent_guest guest = { .serve = serve, .over = over };

static void fire(struct mrf_timer *timer)
{
	ck_assert(!mrf_timer_runs(timer));
	order[fired] = (unsigned)(timer - timers);
	fired_turns[fired++] = turns;
	atomic_fetch_add(&done, 1);
}

static void fire_slowly(struct mrf_timer *timer)
{
	fire(timer);
	usleep(2 * MRF_TURN_US);
}

static void setup(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	fixture_setup();
	memset(timers, 0, sizeof(timers));
	turns = fired = 0;
	done = 0;
	over_once = false;
	for (unsigned i = 0; i < MANY; i++)
		timers[i].over = fire;
	ck_assert_int_eq(mrf_vdev_open((struct sockaddr *)&addr, &vdev), 0);
	ck_assert_int_eq(mrf_agent_start(&agent, vdev, &guest), 0);
}

static void teardown(void)
{
	mrf_agent_stop(&agent);
	mrf_vdev_close(vdev);
	fixture_teardown();
}

static void run(int (*what)(struct mrf_agent *a, void *arg))
{
	ck_assert_int_eq(mrf_agent_command(&agent, NULL, what), 0);
}

static int do_nothing(struct mrf_agent *a, void *arg)
{
	(void)a;
	(void)arg;
	return 0;
}

static int set_all(struct mrf_agent *a, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < MANY; i++)
		mrf_timer_set(a, &timers[i], 0);
	return 0;
}

static int64_t took(unsigned turn)
{
	ck_assert_uint_gt(turn, 0);
	return ended[turn % MRF_ARRAY_SIZE(ended)] - ended[(turn - 1) % MRF_ARRAY_SIZE(ended)];
}

/* A turn ends only when its time is over, as on a machine that is busy. */
START_TEST(timers_that_are_due_run_in_one_turn)
{
	unsigned i;

	/* So that it is known when the first turn began. */
	run(do_nothing);
	want_soon(over_once);
	run(set_all);
	want_soon(done == MANY);
	for (i = 1; i < MANY; i++) {
		if (fired_turns[i] != fired_turns[i - 1])
			ck_assert_int_ge(took(fired_turns[i - 1]), MRF_TURN_US);
	}
}
END_TEST

static int set_slow(struct mrf_agent *a, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		timers[i].over = fire_slowly;
		mrf_timer_set(a, &timers[i], 0);
	}
	return 0;
}

START_TEST(timers_that_take_long_leave_the_turn_to_others)
{
	run(set_slow);
	want_soon(done == 3);
	ck_assert_uint_eq(fired_turns[1], fired_turns[0] + 1);
	ck_assert_uint_eq(fired_turns[2], fired_turns[1] + 1);
}
END_TEST

static int set_backwards(struct mrf_agent *a, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 10; i++)
		mrf_timer_set(a, &timers[i], 100 - 10 * i);
	mrf_timer_set(a, &timers[3], 200);
	mrf_timer_stop(a, &timers[4]);
	return 0;
}

START_TEST(timers_run_in_the_order_of_their_times)
{
	static const unsigned expect[] = { 9, 8, 7, 6, 5, 2, 1, 0, 3 };

	run(set_backwards);
	want_soon(done == 9);
	ck_assert_mem_eq(order, expect, sizeof(expect));
}
END_TEST

static bool again;

static void fire_again(struct mrf_timer *timer)
{
	if (again)
		mrf_timer_set(&agent, timer, 0);
	atomic_fetch_add(&done, 1);
}

static int set_one(struct mrf_agent *a, void *arg)
{
	(void)arg;
	again = true;
	timers[0].over = fire_again;
	mrf_timer_set(a, &timers[0], 0);
	return 0;
}

static int stop_one(struct mrf_agent *a, void *arg)
{
	(void)a;
	(void)arg;
	again = false;
	return 0;
}

/* One that is set for now again and again keeps nobody else from the agent. */
START_TEST(timer_that_never_ends_leaves_room_for_others)
{
	run(set_one);
	want_soon(done > 1000);
	run(stop_one);
	run(stop_one);
}
END_TEST

static TCase *tcase_timers(void)
{
	TCase *tc = tcase_create("timers");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, timers_that_are_due_run_in_one_turn);
	tcase_add_test(tc, timers_that_take_long_leave_the_turn_to_others);
	tcase_add_test(tc, timers_run_in_the_order_of_their_times);
	tcase_add_test(tc, timer_that_never_ends_leaves_room_for_others);
	return tc;
}

UNIT_MAIN("timers", tcase_timers)

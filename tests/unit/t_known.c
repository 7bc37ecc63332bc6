/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages that are known to be there, and changes that meet copies: base/known.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "base/known.h"
#include "unit.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static char *mem;
static bool force;
static char copy[64];

static unsigned asked; /* times that the kernel was asked about a page */

int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice)
{
	asked++;
	return __real_madvise(addr, len, advice);
}

static bool forced(void)
{
	return force;
}

static void setup(void)
{
	force = true;
	mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	memset(mem, 42, 2 * PAGE);
	memset(copy, 42, sizeof(copy));
}

static void trust(void)
{
	mrf_known_trust(forced, NULL);
}

static bool puts_it(void)
{
	memset(mem, 0, sizeof(copy));
	return mrf_known_put(mem, copy, sizeof(copy)) && mem[0] == 42;
}

static void use(unsigned times)
{
	while (times--)
		mrf_known_used(mem, sizeof(copy));
}

static void learn(void)
{
	use(MRF_KNOWN_USES);
	ck_assert(puts_it());
}

START_TEST(nothing_is_known_before_changes_are_told_of)
{
	use(2 * MRF_KNOWN_USES);
	ck_assert(!puts_it());
	trust();
	force = false;
	use(2 * MRF_KNOWN_USES);
	ck_assert(!puts_it());
}
END_TEST

START_TEST(a_page_that_is_used_often_is_known)
{
	trust();
	use(MRF_KNOWN_USES - 1);
	ck_assert(!puts_it());
	use(1);
	ck_assert(puts_it());
	/* The next page is not. */
	ck_assert(!mrf_known_put(mem + PAGE - 4, copy, 8));
	ck_assert(!mrf_known_put(mem + PAGE, copy, 8));
	ck_assert(!mrf_known_put(mem, copy, SIZE_MAX));
	force = false;
	ck_assert(!puts_it());
}
END_TEST

START_TEST(null_is_never_known)
{
	trust();
	ck_assert(!mrf_known_put(NULL, copy, 8));
	ck_assert(!mrf_known_put((void *)8, copy, 8));
	learn();
	ck_assert(!mrf_known_put(NULL, copy, 8));
}
END_TEST

START_TEST(who_distrusts_the_hooks_knows_nothing)
{
	trust();
	learn();
	mrf_known_distrust();
	ck_assert(!puts_it());
	ck_assert(!mrf_known_any());
}
END_TEST

START_TEST(what_others_may_take_away_is_not_known)
{
	FILE *file = tmpfile();
	int flags[] = { MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED,
			MAP_PRIVATE | MAP_ANONYMOUS };
	bool read_only = _i == 3;

	trust();
	ck_assert_int_eq(ftruncate(fileno(file), (off_t)PAGE), 0);
	mem = mmap(NULL, PAGE, read_only ? PROT_READ : PROT_READ | PROT_WRITE, flags[_i],
		   flags[_i] & MAP_ANONYMOUS ? -1 : fileno(file), 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	/* It is there. */
	if (flags[_i] & MAP_SHARED)
		mem[0] = 1;
	else
		ck_assert_int_eq(*(volatile char *)mem, 0);
	for (int i = 0; i < 100; i++)
		mrf_known_used(mem, 8);
	ck_assert(!mrf_known_put(mem, copy, 8));
	fclose(file);
}
END_TEST

START_TEST(a_change_makes_all_unknown_until_it_is_over)
{
	int i;

	trust();
	learn();
	mrf_known_change();
	ck_assert(!puts_it());
	for (i = 0; i < 1000; i++)
		mrf_known_used(mem, 8);
	ck_assert(!puts_it());
	mrf_known_changed();
	ck_assert(!puts_it());
	learn();
}
END_TEST

/* Another change is under way when this one is over. */
START_TEST(nothing_is_learned_while_any_change_goes_on)
{
	int i;

	trust();
	mrf_known_change();
	mrf_known_change();
	mrf_known_changed();
	for (i = 0; i < 1000; i++)
		mrf_known_used(mem, 8);
	ck_assert(!puts_it());
	mrf_known_changed();
	learn();
}
END_TEST

/* --- two threads ------------------------------------------------------------------------ */

static atomic_bool over;
static pthread_t changer;

static void *change_main(void *arg)
{
	mrf_known_change();
	atomic_store(&over, true);
	mrf_known_changed();
	return arg;
}

static void start_change(void)
{
	atomic_store(&over, false);
	ck_assert_int_eq(pthread_create(&changer, NULL, change_main, NULL), 0);
}

START_TEST(a_change_between_announcement_and_comparison_is_seen)
{
	unsigned place;

	trust();
	learn();
	place = mrf_known_enter();
	ck_assert_uint_lt(place, MRF_KNOWN_PLACES);
	ck_assert(mrf_known_is(mem, 8));
	start_change();
	/* It has been counted, and waits. */
	while (mrf_known_is(mem, 8))
		sched_yield();
	usleep(20000);
	ck_assert(!atomic_load(&over));
	mrf_known_leave(place);
	pthread_join(changer, NULL);
	ck_assert(atomic_load(&over));
	ck_assert(!puts_it());
}
END_TEST

START_TEST(a_change_waits_for_a_copier_only_so_long)
{
	struct timespec from, to;
	unsigned place;

	trust();
	learn();
	place = mrf_known_enter();
	start_change();
	pthread_join(changer, NULL);
	/* Nobody waits for this one again. */
	clock_gettime(CLOCK_MONOTONIC, &from);
	start_change();
	pthread_join(changer, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ck_assert_int_le((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000,
			 300);
	mrf_known_leave(place);
	/* But for the next. */
	place = mrf_known_enter();
	start_change();
	usleep(50000);
	ck_assert(!atomic_load(&over));
	mrf_known_leave(place);
	pthread_join(changer, NULL);
}
END_TEST

static int errno_after;

static void change_here(int sig)
{
	int err = errno;

	(void)sig;
	errno = 17;
	mrf_known_change();
	errno_after = errno;
	mrf_known_changed();
	errno = err;
}

START_TEST(a_signal_handler_does_not_wait_for_the_copy_that_it_interrupts)
{
	struct timespec from, to;
	unsigned place;

	trust();
	learn();
	signal(SIGUSR1, change_here);
	place = mrf_known_enter();
	clock_gettime(CLOCK_MONOTONIC, &from);
	raise(SIGUSR1);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ck_assert_int_eq(errno_after, 17);
	ck_assert(!mrf_known_is(mem, 8));
	mrf_known_leave(place);
	ck_assert_int_le((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000,
			 300);
}
END_TEST

START_TEST(where_all_places_are_taken_nothing_is_known)
{
	unsigned i, place[MRF_KNOWN_PLACES];

	trust();
	learn();
	for (i = 0; i < MRF_KNOWN_PLACES; i++)
		ck_assert_uint_lt(place[i] = mrf_known_enter(), MRF_KNOWN_PLACES);
	ck_assert_uint_eq(mrf_known_enter(), MRF_KNOWN_NO_PLACE);
	ck_assert(!puts_it());
	for (i = 0; i < MRF_KNOWN_PLACES; i++)
		mrf_known_leave(place[i]);
	ck_assert(puts_it());
}
END_TEST

static void *enter_main(void *arg)
{
	for (unsigned i = 0; i < MRF_KNOWN_PLACES; i++)
		(void)mrf_known_enter();
	return arg;
}

START_TEST(a_child_has_neither_places_nor_changes_nor_pages)
{
	pthread_t thread;
	int status;
	pid_t pid;

	trust();
	learn();
	pthread_create(&thread, NULL, enter_main, NULL);
	pthread_join(thread, NULL);
	atomic_fetch_add(&mrf_known_counter, MRF_KNOWN_CHANGE + 1);
	pid = fork();
	if (!pid) {
		mrf_known_in_child();
		if (puts_it() || mrf_known_counter & MRF_KNOWN_UNDER_WAY)
			_exit(1);
		use(MRF_KNOWN_USES);
		_exit(puts_it() ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(who_changes_all_the_time_is_left_alone)
{
	trust();
	for (int i = 0; i < 1000; i++) {
		use(MRF_KNOWN_USES - 1);
		mrf_known_change();
		mrf_known_changed();
	}
	ck_assert_uint_eq(asked, 0);
	/* And whoever has stopped is asked for once. */
	learn();
	use(1000);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* --- copies against changes -------------------------------------------------------------- */

static atomic_bool stop;
static atomic_uint pause_us; /* between two changes */

static void *unmap_main(void *arg)
{
	while (!atomic_load(&stop)) {
		/* One change: who finds the page gone does not ask again for long. */
		mrf_known_change();
		mprotect(mem, PAGE, PROT_NONE);
		sched_yield();
		mprotect(mem, PAGE, PROT_READ | PROT_WRITE);
		mrf_known_changed();
		usleep(atomic_load(&pause_us));
	}
	return arg;
}

START_TEST(no_copy_meets_a_page_that_is_gone)
{
	unsigned i, known = 0;
	pthread_t thread;

	trust();
	atomic_store(&stop, false);
	atomic_store(&pause_us, 200);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_main, NULL), 0);
	/* On a slow machine, or under TSan, it takes longer to get to know a page. */
	for (i = 0; i < 1000000 || (!known && i < 10000000); i++) {
		if (i % 50000 == 49999 && !known && atomic_load(&pause_us) < 100000)
			atomic_store(&pause_us, 2 * atomic_load(&pause_us));
		known += mrf_known_put(mem, copy, sizeof(copy));
		mrf_known_used(mem, sizeof(copy));
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(known, 0);
}
END_TEST

static TCase *tcase_known(void)
{
	TCase *tc = tcase_create("known");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, nothing_is_known_before_changes_are_told_of);
	tcase_add_test(tc, a_page_that_is_used_often_is_known);
	tcase_add_test(tc, null_is_never_known);
	tcase_add_loop_test(tc, what_others_may_take_away_is_not_known, 0, 4);
	tcase_add_test(tc, a_change_makes_all_unknown_until_it_is_over);
	tcase_add_test(tc, nothing_is_learned_while_any_change_goes_on);
	tcase_add_test(tc, a_change_between_announcement_and_comparison_is_seen);
	tcase_add_test(tc, a_change_waits_for_a_copier_only_so_long);
	tcase_add_test(tc, a_signal_handler_does_not_wait_for_the_copy_that_it_interrupts);
	tcase_add_test(tc, where_all_places_are_taken_nothing_is_known);
	tcase_add_test(tc, a_child_has_neither_places_nor_changes_nor_pages);
	tcase_add_test(tc, who_changes_all_the_time_is_left_alone);
	tcase_add_test(tc, no_copy_meets_a_page_that_is_gone);
	tcase_add_test(tc, who_distrusts_the_hooks_knows_nothing);
	return tc;
}

UNIT_MAIN("known", tcase_known)

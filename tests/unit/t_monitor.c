/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor on the real kernel: where it permits userfaultfd, what it tells; where not,
 * and with FI_MRFAB_MONITOR=none, that it says so and refuses.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <rdma/fi_errno.h>
#include "base/param.h"
#include "monitor/discard.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"
#include "unit.h"

#define PAGE 4096u

static struct unit_capture cap;
static struct mrf_monitor_client client;
static struct mrf_watch watch;
static atomic_int drops, tells;
static bool have;
static useconds_t delay_us;

static void on_drop(void *arg)
{
	ck_assert_ptr_eq(arg, &client);
	/* Time for the other thread to go on too early. */
	usleep(delay_us);
	atomic_fetch_add(&drops, 1);
}

static void on_dropped(void *arg)
{
	(void)arg;
	ck_assert_int_eq(atomic_fetch_add(&tells, 1) + 1, atomic_load(&drops));
}

/* Does this kernel let this process? */
static bool permitted(void)
{
	int fd = mrf_uffd_open();

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void forgiving(void *arg)
{
	(void)arg;
	atomic_fetch_add(&tells, 1);
}

static void setup(void)
{
	unsetenv("FI_MRFAB_MONITOR");
	mrf_param_reload();
	have = permitted();
	delay_us = 0;
	atomic_store(&drops, 0);
	atomic_store(&tells, 0);
	client = (struct mrf_monitor_client){ .drop = on_drop,
					      .dropped = on_dropped,
					      .arg = &client };
	unit_capture(&cap);
	mrf_monitor_add(&client);
	unit_captured(&cap);
	ck_assert_int_eq(mrf_monitor_usable(), have);
}

static void teardown(void)
{
	mrf_monitor_remove(&client);
	ck_assert(!mrf_monitor_usable());
}

static void *map(size_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

static int watch_it(struct mrf_watch *w, void *mem, size_t pages)
{
	int ret;

	mrf_list_init(&w->node);
	w->start = (uintptr_t)mem;
	w->len = pages * PAGE;
	mrf_monitor_lock();
	ret = mrf_monitor_watch(w);
	ck_assert_int_eq(mrf_list_empty(&w->node), ret != 0);
	mrf_monitor_unlock();
	return ret;
}

static void unwatch(struct mrf_watch *w)
{
	mrf_monitor_lock();
	mrf_monitor_unwatch(w);
	ck_assert(mrf_list_empty(&w->node));
	mrf_monitor_unlock();
}

/* What a change has to lead to, before the call that makes it returns. */
static void must_watch(void *mem, size_t pages)
{
	ck_assert_int_eq(watch_it(&watch, mem, pages), have ? 0 : -FI_ENOSYS);
	ck_assert_int_eq(atomic_load(&drops), 0);
}

static void must_have_dropped(int n)
{
	ck_assert_int_eq(atomic_load(&drops), have ? n : 0);
	ck_assert_int_eq(atomic_load(&tells), have ? n : 0);
	/* The kernel has ordered what follows; race detectors know of locks only. */
	mrf_monitor_lock();
	mrf_monitor_unlock();
}

START_TEST(munmap_drops_before_it_returns)
{
	char *mem = map(4);

	delay_us = 20000;
	must_watch(mem, 4);
	munmap(mem + PAGE, PAGE);
	must_have_dropped(1);
	ck_assert(mrf_list_empty(&watch.node));
	munmap(mem, 4 * PAGE);
	must_have_dropped(1);
}
END_TEST

START_TEST(a_mapping_over_it_drops)
{
	char *mem = map(4);

	must_watch(mem, 4);
	ck_assert_ptr_eq(mmap(mem + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + PAGE);
	must_have_dropped(1);
	munmap(mem, 4 * PAGE);
}
END_TEST

START_TEST(a_mapping_of_another_kind_over_it_drops_and_the_rest_is_let_go)
{
	char *mem = map(4);
	FILE *file = tmpfile();

	ck_assert_int_eq(ftruncate(fileno(file), PAGE), 0);
	must_watch(mem, 4);
	ck_assert_ptr_eq(mmap(mem + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED,
			      fileno(file), 0),
			 mem + PAGE);
	must_have_dropped(1);
	munmap(mem, 4 * PAGE);
	must_have_dropped(1);
	fclose(file);
}
END_TEST

START_TEST(discarding_drops_and_the_range_is_not_watched_again)
{
	char *mem = map(4);

	delay_us = 20000;
	must_watch(mem, 4);
	madvise(mem + PAGE, PAGE, MADV_DONTNEED);
	must_have_dropped(1);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? -FI_EINVAL : -FI_ENOSYS);
	ck_assert_int_eq(watch_it(&watch, mem + 2 * PAGE, 2), have ? 0 : -FI_ENOSYS);
	madvise(mem + 3 * PAGE, PAGE, MADV_FREE);
	must_have_dropped(2);
	munmap(mem, 4 * PAGE);
	must_have_dropped(2);
}
END_TEST

START_TEST(moving_it_drops_and_the_new_place_is_free)
{
	char *mem = map(4), *to = map(4);
	int moved;

	must_watch(mem, 4);
	ck_assert_ptr_eq(
		mremap(mem, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	/* Of one move the kernel may tell twice: what moved, and what is gone. */
	moved = atomic_load(&drops);
	ck_assert(have == (moved > 0));
	munmap(to, 4 * PAGE);
	must_have_dropped(moved);
}
END_TEST

START_TEST(what_is_not_watched_any_more_is_silent)
{
	char *mem = map(4);

	must_watch(mem, 4);
	unwatch(&watch);
	unwatch(&watch);
	munmap(mem, 4 * PAGE);
	must_have_dropped(0);
}
END_TEST

START_TEST(pages_of_another_watch_stay_watched)
{
	static const struct {
		unsigned page;
		int heard;
	} at[] = { { 0, 0 }, { 1, 1 }, { 2, 0 }, { 3, 1 }, { 4, 0 } };
	struct mrf_watch one, other;
	unsigned i;

	for (i = 0; i < 5; i++) {
		char *mem = map(5);
		int before = atomic_load(&drops);

		mrf_list_init(&watch.node);
		watch_it(&watch, mem, 5);
		watch_it(&one, mem + PAGE, 1);
		watch_it(&other, mem + 3 * PAGE, 1);
		unwatch(&watch);
		munmap(mem + at[i].page * PAGE, PAGE);
		ck_assert_int_eq(atomic_load(&drops) - before, have ? at[i].heard : 0);
		unwatch(&one);
		unwatch(&other);
		munmap(mem, 5 * PAGE);
		ck_assert_int_eq(atomic_load(&drops) - before, have ? at[i].heard : 0);
	}
}
END_TEST

START_TEST(memory_that_cannot_be_watched_is_refused)
{
	char *mem = map(4);
	void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A file that is certainly not in a tmpfs, which userfaultfd would take. */
	FILE *file = fopen("/proc/self/exe", "r");
	void *text;

	ck_assert_ptr_nonnull(file);
	text = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0);
	ck_assert_int_eq(watch_it(&watch, text, 1), have ? -FI_EINVAL : -FI_ENOSYS);
	munmap(text, PAGE);
	munmap(shared, PAGE);
	fclose(file);
	/* A hole would be mapped later, and nobody would hear what becomes of that. */
	munmap(mem + PAGE, PAGE);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? -FI_EAGAIN : -FI_ENOSYS);
	ck_assert_int_eq(watch_it(&watch, mem + 2 * PAGE, 2), have ? 0 : -FI_ENOSYS);
	unwatch(&watch);
	munmap(mem, 4 * PAGE);
	must_have_dropped(0);
}
END_TEST

START_TEST(memory_of_another_userfaultfd_is_refused)
{
	char *mem = map(2);
	int fd = mrf_uffd_open();

	if (have) {
		ck_assert_int_eq(mrf_uffd_register(fd, (uintptr_t)mem, PAGE), 0);
		ck_assert_int_eq(watch_it(&watch, mem, 1), -FI_EBUSY);
		ck_assert_int_eq(watch_it(&watch, mem + PAGE, 1), 0);
		unwatch(&watch);
		close(fd);
	}
	ck_assert_int_eq(watch_it(&watch, mem, 1), have ? 0 : -FI_ENOSYS);
	unwatch(&watch);
	munmap(mem, 2 * PAGE);
	must_have_dropped(0);
}
END_TEST

/* Pages that nobody touched stay untouched: watching must not bring memory in. */
START_TEST(watching_brings_no_page_in)
{
	unsigned char there[64];
	char *mem = map(64);
	unsigned i;

	must_watch(mem, 64);
	ck_assert_int_eq(mincore(mem, 64 * PAGE, there), 0);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(there[i] & 1, 0);
	mem[5 * PAGE] = 1;
	must_have_dropped(0);
	unwatch(&watch);
	munmap(mem, 64 * PAGE);
}
END_TEST

START_TEST(every_client_drops)
{
	struct mrf_monitor_client other = client;
	char *mem = map(1);

	other.dropped = NULL;
	client.dropped = forgiving;
	mrf_monitor_add(&other);
	must_watch(mem, 1);
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&drops), have ? 2 : 0);
	ck_assert_int_eq(atomic_load(&tells), have ? 1 : 0);
	mrf_monitor_remove(&other);
	ck_assert_int_eq(mrf_monitor_usable(), have);
}
END_TEST

/* While it is open in a child, closing it in the parent would wake nobody. */
static bool inherited(void)
{
	char path[32], what[64];
	ssize_t n;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what) - 1);
		what[n < 0 ? 0 : n] = '\0';
		if (strstr(what, "userfaultfd"))
			return true;
	}
	return false;
}

START_TEST(a_child_has_no_monitor_and_its_parent_keeps_it)
{
	char *mem = map(1);
	int status;
	pid_t pid;

	client.dropped = forgiving;
	must_watch(mem, 1);
	ck_assert_int_eq(inherited(), have);
	pid = fork();
	if (!pid) {
		/* Nobody must wait for a monitor that is not there. */
		munmap(mem, PAGE);
		_exit(mrf_monitor_usable() || inherited());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	munmap(mem, PAGE);
	must_have_dropped(1);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* which starts no thread after a fork of several */

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* In a child: 0 when what it watches itself is watched, and its parent's clients rest. */
static int own_monitor(void)
{
	atomic_int heard = 0;
	struct mrf_monitor_client own = { .drop = count, .arg = &heard };
	char *mem = map(1);
	int ret;

	alarm(20);
	mrf_monitor_add(&own);
	if (mrf_monitor_usable() != have)
		return 1;
	ret = watch_it(&watch, mem, 1);
	munmap(mem, PAGE);
	/* All that came before was heard when this returns. */
	mrf_monitor_remove(&own);
	return ret != (have ? 0 : -FI_ENOSYS) || heard != have || atomic_load(&drops) ||
	       mrf_monitor_usable();
}

static void *be_inside(void *arg)
{
	sem_t *sem = arg;

	mrf_monitor_lock();
	sem_post(&sem[0]);
	sem_wait(&sem[1]);
	mrf_monitor_unlock();
	return NULL;
}

START_TEST(a_child_has_a_monitor_of_its_own_when_it_wants_one)
{
	pthread_t other;
	int status;
	sem_t sem[2];
	pid_t pid;

	/* Another thread is inside when this one forks. */
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	ck_assert_int_eq(pthread_create(&other, NULL, be_inside, sem), 0);
	sem_wait(&sem[0]);
	pid = fork();
	if (!pid)
		_exit(own_monitor());
	sem_post(&sem[1]);
	pthread_join(other, NULL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	client.dropped = forgiving;
	must_watch(map(1), 1);
}
END_TEST
#endif

/* --- storm ------------------------------------------------------------------------ */

static atomic_bool stopping;

/* Memory comes and goes; a page that is watched must have been dropped when it is gone.
 */
static void *churn(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < 300; i++) {
		char *mem = map(8);
		struct mrf_watch w;

		mem[0] = 1;
		if (!watch_it(&w, mem, 8) && i % 3 == 0)
			madvise(mem, PAGE, MADV_DONTNEED);
		else if (i % 3 == 1)
			unwatch(&w);
		munmap(mem, 8 * PAGE);
		mrf_monitor_lock();
		ck_assert(mrf_list_empty(&w.node));
		mrf_monitor_unlock();
	}
	return NULL;
}

/* The allocator gives memory back to the kernel with its own lock held. */
static void *allocate(void *arg)
{
	void *mem[64];
	unsigned i;

	(void)arg;
	while (!atomic_load(&stopping)) {
		for (i = 0; i < 64; i++)
			memset(mem[i] = malloc(i * 3000 + 1), 1, i * 3000 + 1);
		for (i = 0; i < 64; i++)
			free(mem[i]);
	}
	return NULL;
}

START_TEST(a_storm_of_changes_ends)
{
	pthread_t thread[4];
	unsigned i;

	client.dropped = forgiving;
	atomic_store(&stopping, false);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, i < 3 ? churn : allocate, NULL);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&stopping, true);
	pthread_join(thread[3], NULL);
	ck_assert(have == (atomic_load(&drops) > 0));
}
END_TEST

/* --- without ---------------------------------------------------------------------- */

static const char *add_and_remove(void)
{
	unit_capture(&cap);
	mrf_monitor_add(&client);
	ck_assert(!mrf_monitor_usable());
	ck_assert_int_eq(watch_it(&watch, &watch, 1), -FI_ENOSYS);
	mrf_monitor_remove(&client);
	return unit_captured(&cap);
}

START_TEST(none_is_none_and_says_nothing)
{
	setenv("FI_MRFAB_MONITOR", "none", 1);
	mrf_param_reload();
	ck_assert_str_eq(add_and_remove(), "");
}
END_TEST

START_TEST(an_unknown_monitor_is_none_and_said_once)
{
	const char *text;

	setenv("FI_MRFAB_MONITOR", "kprobes", 1);
	mrf_param_reload();
	text = add_and_remove();
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3050"));
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_str_eq(add_and_remove(), "");
}
END_TEST

START_TEST(without_a_descriptor_there_is_none_and_it_says_why)
{
	struct rlimit before, none;
	const char *text;

	unsetenv("FI_MRFAB_MONITOR");
	mrf_param_reload();
	unit_capture(&cap);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = (rlim_t)dup(0);
	close((int)none.rlim_cur);
	setrlimit(RLIMIT_NOFILE, &none);
	mrf_monitor_add(&client);
	setrlimit(RLIMIT_NOFILE, &before);
	ck_assert(!mrf_monitor_usable());
	mrf_monitor_remove(&client);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3051"));
	ck_assert_uint_eq(unit_lines(text), 1);
}
END_TEST

/* --- discarded ranges ------------------------------------------------------------- */

static struct mrf_discards set;

static bool in_set(uintptr_t at)
{
	return mrf_discard_find(&set, at, at + 1);
}

START_TEST(discarded_ranges_are_remembered_and_joined)
{
	set.count = 0;
	mrf_discard_add(&set, 100, 200, 5);
	mrf_discard_add(&set, 300, 400, 6);
	ck_assert(in_set(100) && in_set(199) && in_set(300));
	ck_assert(!in_set(99) && !in_set(200) && !in_set(299) && !in_set(400));
	mrf_discard_add(&set, 200, 250, 7);
	ck_assert_uint_eq(set.count, 2);
	mrf_discard_add(&set, 240, 300, 8);
	ck_assert_uint_eq(set.count, 1);
	ck_assert_uint_eq(set.entry[0].start, 100);
	ck_assert_uint_eq(set.entry[0].end, 400);
	ck_assert_uint_eq(set.entry[0].at, 8);
}
END_TEST

START_TEST(a_full_table_only_gets_more_cautious)
{
	uintptr_t i;

	set.count = 0;
	for (i = 0; i < 1000; i++)
		mrf_discard_add(&set, (i * 37 % 1000) * 100, (i * 37 % 1000) * 100 + 10,
				i);
	ck_assert_uint_eq(set.count, MRF_DISCARDS);
	for (i = 0; i < 1000; i++)
		ck_assert(in_set(i * 100) && in_set(i * 100 + 9));
	for (i = 1; i < set.count; i++)
		ck_assert_uint_lt(set.entry[i - 1].end, set.entry[i].start);
}
END_TEST

START_TEST(an_unmap_frees_old_ranges_that_it_covers_wholly)
{
	set.count = 0;
	mrf_discard_add(&set, 100, 200, 1000);
	mrf_discard_add(&set, 300, 400, 2000);
	mrf_discard_add(&set, 500, 600, 1000);
	mrf_discard_unmapped(&set, 100, 550, 1000 + MRF_DISCARD_MS - 1);
	ck_assert_uint_eq(set.count, 3);
	mrf_discard_unmapped(&set, 100, 550, 1000 + MRF_DISCARD_MS);
	ck_assert(!in_set(150) && in_set(350) && in_set(550));
}
END_TEST

static TCase *events(void)
{
	TCase *tc = tcase_create("events");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, munmap_drops_before_it_returns);
	tcase_add_test(tc, a_mapping_over_it_drops);
	tcase_add_test(tc,
		       a_mapping_of_another_kind_over_it_drops_and_the_rest_is_let_go);
	tcase_add_test(tc, discarding_drops_and_the_range_is_not_watched_again);
	tcase_add_test(tc, moving_it_drops_and_the_new_place_is_free);
	tcase_add_test(tc, what_is_not_watched_any_more_is_silent);
	tcase_add_test(tc, pages_of_another_watch_stay_watched);
	tcase_add_test(tc, memory_that_cannot_be_watched_is_refused);
	tcase_add_test(tc, memory_of_another_userfaultfd_is_refused);
	tcase_add_test(tc, watching_brings_no_page_in);
	tcase_add_test(tc, every_client_drops);
	tcase_add_test(tc, a_child_has_no_monitor_and_its_parent_keeps_it);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tc, a_child_has_a_monitor_of_its_own_when_it_wants_one);
#endif
	tcase_add_test(tc, a_storm_of_changes_ends);
	return tc;
}

static TCase *without(void)
{
	TCase *tc = tcase_create("without");

	tcase_add_test(tc, none_is_none_and_says_nothing);
	tcase_add_test(tc, an_unknown_monitor_is_none_and_said_once);
	tcase_add_test(tc, without_a_descriptor_there_is_none_and_it_says_why);
	return tc;
}

static TCase *discards(void)
{
	TCase *tc = tcase_create("discards");

	tcase_add_test(tc, discarded_ranges_are_remembered_and_joined);
	tcase_add_test(tc, a_full_table_only_gets_more_cautious);
	tcase_add_test(tc, an_unmap_frees_old_ranges_that_it_covers_wholly);
	return tc;
}

/* What is said once is said by the first, also when all tests run in one process. */
UNIT_MAIN("monitor", without, events, discards)

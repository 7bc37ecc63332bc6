/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ground: the table, and on the real kernel what is registered, how often, and that it goes
 * when its memory does. Where the kernel does not permit userfaultfd, only the table.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <rdma/fi_errno.h>
#include "base/param.h"
#include "monitor/ground.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"
#include "child.h"
#include "unit.h"

#define PAGE 4096u
#define CHUNK MRF_CHUNK

/* --- the table ----------------------------------------------------------------------- */

#define BASE (CHUNK * 77)

static bool add(uintptr_t start, uintptr_t end)
{
	struct mrf_ground range = { .start = start, .end = end };

	return mrf_ground_add(&range);
}

static bool cut(uintptr_t start, uintptr_t end, struct mrf_ground *lost)
{
	struct mrf_ground range;
	unsigned at = 0;

	ck_assert(mrf_ground_next(start, end, &at, &range));
	return mrf_ground_cut(&range, start, end, lost);
}

START_TEST(ground_is_found_by_any_byte_and_by_no_other)
{
	mrf_ground_clear();
	ck_assert(!mrf_ground_touches(0, UINTPTR_MAX));
	ck_assert(add(BASE + 3 * PAGE, BASE + 5 * PAGE));
	ck_assert(add(BASE + CHUNK - PAGE, BASE + CHUNK));
	ck_assert_uint_eq(mrf_ground_count(), 2);
	ck_assert(!mrf_ground_touches(BASE, BASE + 3 * PAGE));
	ck_assert(mrf_ground_touches(BASE, BASE + 3 * PAGE + 1));
	ck_assert(mrf_ground_touches(BASE + 5 * PAGE - 1, BASE + 5 * PAGE));
	ck_assert(!mrf_ground_touches(BASE + 5 * PAGE, BASE + CHUNK - PAGE));
	ck_assert(mrf_ground_touches(BASE + CHUNK - 1, BASE + 2 * CHUNK));
	ck_assert(!mrf_ground_touches(BASE + CHUNK, BASE + 9 * CHUNK));
	ck_assert(mrf_ground_touches(0, UINTPTR_MAX));
	ck_assert(mrf_ground_touches(PAGE, BASE + 4 * PAGE));
	/* Of another chunk of the same set. */
	ck_assert(!mrf_ground_touches(BASE + MRF_GROUND_SETS * CHUNK,
				      BASE + MRF_GROUND_SETS * CHUNK + CHUNK));
	ck_assert(mrf_ground_has(BASE + 3 * PAGE, BASE + 5 * PAGE));
	ck_assert(!mrf_ground_has(BASE + 3 * PAGE, BASE + 6 * PAGE));
	ck_assert(!mrf_ground_has(BASE + 2 * PAGE, BASE + 5 * PAGE));
	/* 0 is no range, and there is none where it would be one. */
	ck_assert(!mrf_ground_has(0, PAGE));
	ck_assert(!add(0, PAGE));
}
END_TEST

START_TEST(ground_is_cut_exactly)
{
	struct mrf_ground lost, range;

	mrf_ground_clear();
	add(BASE, BASE + 10 * PAGE);
	ck_assert(!cut(BASE + 4 * PAGE, BASE + 5 * PAGE, &lost));
	ck_assert_uint_eq(mrf_ground_count(), 2);
	ck_assert(mrf_ground_has(BASE, BASE + 4 * PAGE));
	ck_assert(!mrf_ground_touches(BASE + 4 * PAGE, BASE + 5 * PAGE));
	ck_assert(mrf_ground_has(BASE + 5 * PAGE, BASE + 10 * PAGE));
	ck_assert(!cut(PAGE, BASE + PAGE, &lost));
	ck_assert(mrf_ground_first(BASE, BASE + 4 * PAGE, &range));
	ck_assert_uint_eq(range.start, BASE + PAGE);
	ck_assert_uint_eq(range.step, MRF_GROUND_HULL);
	ck_assert(!cut(BASE + 9 * PAGE, UINTPTR_MAX, &lost));
	ck_assert(mrf_ground_has(BASE + 5 * PAGE, BASE + 9 * PAGE));
	ck_assert(!cut(BASE + 5 * PAGE, BASE + 9 * PAGE, &lost));
	ck_assert_uint_eq(mrf_ground_count(), 1);
}
END_TEST

START_TEST(ground_without_room_loses_the_smaller_part)
{
	struct mrf_ground lost;
	unsigned i;

	mrf_ground_clear();
	for (i = 0; i < MRF_GROUND_WAYS; i++)
		ck_assert(add(BASE + i * MRF_GROUND_SETS * CHUNK,
			      BASE + i * MRF_GROUND_SETS * CHUNK + 10 * PAGE));
	ck_assert(!add(BASE + 20 * PAGE, BASE + 21 * PAGE));
	ck_assert(cut(BASE + 2 * PAGE, BASE + 3 * PAGE, &lost));
	ck_assert_uint_eq(lost.start, BASE);
	ck_assert_uint_eq(lost.end, BASE + 2 * PAGE);
	ck_assert(mrf_ground_has(BASE + 3 * PAGE, BASE + 10 * PAGE));
	ck_assert_uint_eq(mrf_ground_count(), MRF_GROUND_WAYS);
	mrf_ground_clear();
}
END_TEST

/* What is left of it is not met again. */
START_TEST(ground_that_is_cut_is_met_once)
{
	uintptr_t start = BASE + 5 * PAGE, end = BASE + 2 * CHUNK + 5 * PAGE;
	struct mrf_ground range, lost;
	unsigned at = 0, i;

	ck_assert(add(BASE, BASE + 10 * PAGE) && add(BASE + 20 * PAGE, BASE + 30 * PAGE));
	ck_assert(add(BASE + CHUNK, BASE + 2 * CHUNK));
	ck_assert(add(BASE + 2 * CHUNK, BASE + 2 * CHUNK + 10 * PAGE));
	for (i = 0; mrf_ground_next(start, end, &at, &range); i++)
		mrf_ground_cut(&range, start, end, &lost);
	ck_assert_uint_eq(i, 4);
	ck_assert(!mrf_ground_touches(start, end));
	ck_assert_uint_eq(mrf_ground_count(), 2);
	mrf_ground_clear();
}
END_TEST

/* --- what the kernel is asked --------------------------------------------------------- */

static atomic_uint registers, proofs;

/* In the place of the C library's. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	atomic_fetch_add(&registers, request == UFFDIO_REGISTER);
	atomic_fetch_add(&proofs, request == UFFDIO_CONTINUE);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static struct mrf_monitor_client client;
static struct mrf_watch w[512];
static bool have, direct;

static void on_drop(struct mrf_watch *watch)
{
	ck_assert(!mrf_watch_on(watch));
}

static void setup(void)
{
	unsetenv("FI_MR_CACHE_MONITOR");
	mrf_env_reload();
	client = (struct mrf_monitor_client){ .drop = on_drop, .local = true };
	mrf_monitor_add(&client);
	have = mrf_monitor_usable();
	direct = false;
}

static void teardown(void)
{
	mrf_monitor_remove(&client);
}

/* Begins with a chunk; touched, so that the kernel can join pieces of it. */
static char *map_chunks(unsigned n)
{
	size_t len = (n + 1) * CHUNK;
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *start = (char *)(((uintptr_t)mem + CHUNK - 1) & ~(CHUNK - 1));

	ck_assert_ptr_ne(mem, MAP_FAILED);
	*start = 1;
	if (start > mem)
		munmap(mem, (size_t)(start - mem));
	munmap(start + n * CHUNK, (size_t)(mem + CHUNK - start));
	return start;
}

static int watch(unsigned i, void *mem, size_t pages)
{
	int ret;

	if (!w[i].node)
		ck_assert_int_eq(mrf_watch_init(&w[i], &client), 0);
	w[i].start = (uintptr_t)mem;
	w[i].len = pages * PAGE;
	mrf_monitor_lock();
	ret = mrf_monitor_watch_locked(&w[i]);
	mrf_monitor_unlock();
	return ret;
}

static void unwatch(unsigned i)
{
	mrf_monitor_lock();
	mrf_monitor_unwatch_locked(&w[i]);
	mrf_monitor_unlock();
}

static bool is_ground(void *mem, size_t pages)
{
	return mrf_ground_has((uintptr_t)mem, (uintptr_t)mem + pages * PAGE);
}

/* Would the kernel let another userfaultfd have this page? Not if it is registered with ours. */
static bool is_free(void *mem)
{
	int fd = mrf_uffd_open(), ret = mrf_uffd_register(fd, (uintptr_t)mem, PAGE);

	close(fd);
	ck_assert(!ret || ret == -FI_EBUSY);
	return !ret;
}

START_TEST(a_chunk_is_registered_twice_and_never_again)
{
	char *mem = map_chunks(3) + CHUNK;
	unsigned i, round;

	if (!have)
		return;
	ck_assert_int_eq(watch(0, mem + 7 * PAGE, 1), 0);
	ck_assert(is_ground(mem + 7 * PAGE, 1) && !is_ground(mem + 8 * PAGE, 1));
	ck_assert_int_eq(watch(1, mem + 9 * PAGE, 1), 0);
	ck_assert(is_ground(mem, CHUNK / PAGE));
	unwatch(0);
	unwatch(1);
	atomic_store(&registers, 0);
	atomic_store(&proofs, 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < CHUNK / PAGE; i++)
			ck_assert_int_eq(watch(i, mem + i * PAGE, 1), 0);
		for (i = 0; i < CHUNK / PAGE; i++)
			unwatch(i);
	}
	ck_assert_uint_eq(atomic_load(&registers), 0);
	ck_assert_uint_eq(atomic_load(&proofs), 0);
	ck_assert(!is_free(mem) && is_free(mem - PAGE) && is_free(mem + CHUNK));
	munmap(mem - CHUNK, 3 * CHUNK);
}
END_TEST

/* A mapping that ends in the chunk, another one beside it, or a hole: what lies between. */
START_TEST(ground_is_one_mapping)
{
	char *mem = map_chunks(1);
	unsigned i;

	if (!have)
		return;
	munmap(mem + 100 * PAGE, PAGE);
	ck_assert_int_eq(mprotect(mem + 40 * PAGE, PAGE, PROT_READ), 0);
	atomic_store(&registers, 0);
	for (i = 0; i < 40; i++)
		ck_assert_int_eq(watch(i, mem + i * PAGE, 1), 0);
	ck_assert(is_ground(mem, 40) && !is_ground(mem + 40 * PAGE, 1));
	/* By steps of 16 pages; then the last ones each, and some more to join them. */
	ck_assert_uint_lt(atomic_load(&registers), 30);
	ck_assert(is_free(mem + 40 * PAGE) && is_free(mem + 41 * PAGE));
	munmap(mem, CHUNK);
	ck_assert(!mrf_ground_touches((uintptr_t)mem, (uintptr_t)mem + CHUNK));
}
END_TEST

START_TEST(ground_leaves_out_another_userfaultfds_memory)
{
	char *mem = map_chunks(1);
	int fd = mrf_uffd_open();

	if (!have)
		return;
	ck_assert_int_eq(mrf_uffd_register(fd, (uintptr_t)mem + 100 * PAGE, PAGE), 0);
	ck_assert_int_eq(watch(0, mem, 1), 0);
	ck_assert_int_eq(watch(1, mem + PAGE, 1), 0);
	ck_assert(is_ground(mem, 16) && !is_ground(mem, 17));
	ck_assert_int_eq(watch(2, mem + 100 * PAGE, 1), -FI_EBUSY);
	ck_assert_int_eq(mrf_uffd_verify(fd, (uintptr_t)mem + 100 * PAGE, PAGE), 0);
	close(fd);
	munmap(mem, CHUNK);
}
END_TEST

START_TEST(ground_goes_with_the_monitor)
{
	char *mem = map_chunks(1);

	if (!have)
		return;
	ck_assert_int_eq(watch(0, mem, 1), 0);
	unwatch(0);
	ck_assert(!is_free(mem));
	mrf_monitor_remove(&client);
	ck_assert(is_free(mem));
	ck_assert_uint_eq(mrf_ground_count(), 0);
	mrf_monitor_add(&client);
	munmap(mem, CHUNK);
}
END_TEST

/* What has no room is watched all the same, and let go when that ends. */
START_TEST(ground_that_nobody_uses_gives_way)
{
	size_t far = MRF_GROUND_SETS * CHUNK;
	char *mem;
	unsigned i;

	if (!have)
		return;
	mem = map_chunks((MRF_GROUND_WAYS + 1) * MRF_GROUND_SETS);
	for (i = 0; i <= MRF_GROUND_WAYS; i++)
		ck_assert_int_eq(watch(i, mem + i * far, 1), 0);
	ck_assert(!is_ground(mem + MRF_GROUND_WAYS * far, 1));
	ck_assert(!is_free(mem + MRF_GROUND_WAYS * far));
	unwatch(MRF_GROUND_WAYS);
	ck_assert(is_free(mem + MRF_GROUND_WAYS * far));
	unwatch(1);
	ck_assert(is_ground(mem + far, 1));
	ck_assert_int_eq(watch(MRF_GROUND_WAYS, mem + MRF_GROUND_WAYS * far, 1), 0);
	ck_assert(is_ground(mem + MRF_GROUND_WAYS * far, 1));
	ck_assert(!is_ground(mem + far, 1) && is_free(mem + far));
	munmap(mem, (MRF_GROUND_WAYS + 1) * far);
	ck_assert_uint_eq(mrf_ground_count(), 0);
}
END_TEST

static char *still_there; /* its first byte, when the drop came */
static int first_byte;

static void look_at_drop(struct mrf_watch *watch)
{
	(void)watch;
	first_byte = *still_there;
}

/* A hook comes before the change, to what stands alone, too. */
START_TEST(hooks_find_what_is_watched_without_ground)
{
	size_t far = MRF_GROUND_SETS * CHUNK;
	char *mem;
	unsigned i;

	if (!have)
		return;
	mem = map_chunks((MRF_GROUND_WAYS + 1) * MRF_GROUND_SETS);
	for (i = 0; i <= MRF_GROUND_WAYS; i++)
		ck_assert_int_eq(watch(i, mem + i * far, 1), 0);
	still_there = mem + MRF_GROUND_WAYS * far;
	*still_there = 42;
	ck_assert(!is_ground(still_there, 1));
	client.drop = look_at_drop;
	munmap(still_there + PAGE, PAGE);
	ck_assert_int_eq(first_byte, 0);
	munmap(still_there, PAGE);
	ck_assert_int_eq(first_byte, 42);
	client.drop = on_drop;
	munmap(mem, (MRF_GROUND_WAYS + 1) * far);
}
END_TEST

/* One thread stops where its hook looks for ground. */
static _Thread_local bool stops;
static atomic_int stopped; /* 1: there; 2: it may go on */

bool __real_mrf_ground_touches(uintptr_t start, uintptr_t end);
bool __wrap_mrf_ground_touches(uintptr_t start, uintptr_t end);

bool __wrap_mrf_ground_touches(uintptr_t start, uintptr_t end)
{
	if (stops) {
		stops = false;
		atomic_store(&stopped, 1);
		while (atomic_load(&stopped) != 2)
			usleep(100);
	}
	return __real_mrf_ground_touches(start, end);
}

static void *stop_and_unmap(void *arg)
{
	stops = true;
	munmap(arg, PAGE);
	return NULL;
}

/* While a hook looks, what is watched there loses its ground: there is no room for the part. */
START_TEST(hooks_find_what_loses_its_ground_meanwhile)
{
	size_t far = MRF_GROUND_SETS * CHUNK;
	pthread_t thread;
	char *mem;
	unsigned i;

	if (!have)
		return;
	mem = map_chunks(MRF_GROUND_WAYS * MRF_GROUND_SETS);
	still_there = mem + 500 * PAGE;
	*still_there = 42;
	ck_assert_int_eq(watch(0, mem, 1), 0);
	ck_assert_int_eq(watch(MRF_GROUND_WAYS, still_there, 1), 0);
	for (i = 1; i < MRF_GROUND_WAYS; i++)
		ck_assert_int_eq(watch(i, mem + i * far, 1), 0);
	ck_assert(is_ground(mem, CHUNK / PAGE));
	client.drop = look_at_drop;
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_and_unmap, still_there), 0);
	while (atomic_load(&stopped) != 1)
		usleep(100);
	munmap(mem + 400 * PAGE, PAGE);
	ck_assert(!is_ground(still_there, 1) && mrf_watch_on(&w[i]));
	atomic_store(&stopped, 2);
	pthread_join(thread, NULL);
	ck_assert_int_eq(first_byte, 42);
	client.drop = on_drop;
	munmap(mem, MRF_GROUND_WAYS * far);
}
END_TEST

START_TEST(ground_is_not_a_childs)
{
	char *mem = map_chunks(1);
	pid_t pid;

	if (!have)
		return;
	ck_assert_int_eq(watch(0, mem, 1), 0);
	pid = fork();
	if (!pid) {
		munmap(mem, PAGE);
		_exit(mrf_ground_count() || mrf_monitor_usable());
	}
	ck_assert(child_succeeded(pid));
	ck_assert(is_ground(mem, 1));
	munmap(mem, CHUNK);
}
END_TEST

/* --- changes -------------------------------------------------------------------------- */

static void by_munmap(char *mem)
{
	if (direct)
		syscall(SYS_munmap, mem, PAGE);
	else
		munmap(mem, PAGE);
}

static void by_mmap(char *mem)
{
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	if (direct)
		syscall(SYS_mmap, mem, PAGE, prot, flags, -1, 0);
	else
		ck_assert_ptr_eq(mmap(mem, PAGE, prot, flags, -1, 0), mem);
}

static void by_mremap(char *mem)
{
	char *to = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	if (direct)
		syscall(SYS_mremap, mem, PAGE, PAGE, flags, to);
	else
		ck_assert_ptr_eq(mremap(mem, PAGE, PAGE, flags, to), to);
}

static void advise(char *mem, int advice)
{
	if (direct)
		syscall(SYS_madvise, mem, PAGE, advice);
	else
		madvise(mem, PAGE, advice);
}

static void by_dontneed(char *mem)
{
	advise(mem, MADV_DONTNEED);
}

static void by_free(char *mem)
{
	advise(mem, MADV_FREE);
}

static void (*const ways[])(char *mem) = { by_munmap, by_mmap, by_mremap, by_dontneed, by_free };
#define WAYS 5

/* With a watch beside it, the rest stays ground; with none, nothing does. */
START_TEST(ground_goes_when_its_memory_changes)
{
	unsigned beside;

	for (beside = 0; have && beside < 2; beside++) {
		/* Stays, for what was discarded there is not watched again. */
		char *mem = map_chunks(1), *page = mem + 5 * PAGE;

		memset(mem, 1, 16 * PAGE);
		ck_assert_int_eq(watch(0, mem, 1), 0);
		ck_assert_int_eq(watch(1, page, 1), 0);
		ck_assert(is_ground(mem, CHUNK / PAGE));
		unwatch(1);
		if (!beside)
			unwatch(0);
		direct = _i % 2;
		ways[_i / 2](page);
		/* What an event led to is complete when the monitor's thread has let go. */
		mrf_monitor_settle();
		ck_assert(!mrf_ground_touches((uintptr_t)page, (uintptr_t)page + PAGE));
		ck_assert_int_eq(is_ground(mem, 5), beside);
		ck_assert_int_eq(is_ground(page + PAGE, 506), beside);
		ck_assert_int_eq(is_free(mem), !beside);
		/* A hook was first: no event told of a discard. */
		if (_i / 2 >= 3)
			ck_assert_int_eq(watch(1, page, 1), direct ? -FI_EINVAL : 0);
		direct = false;
		by_mmap(page);
		ck_assert(is_free(page));
	}
}
END_TEST

START_TEST(a_mapping_with_ground_in_it_can_be_moved_and_grow)
{
	char *mem = map_chunks(3), *to;

	if (!have)
		return;
	memset(mem, 3, 3 * CHUNK);
	ck_assert_int_eq(watch(0, mem + CHUNK, 1), 0);
	ck_assert_int_eq(watch(1, mem + CHUNK + PAGE, 1), 0);
	unwatch(0);
	to = mremap(mem, 3 * CHUNK, 4 * CHUNK, MREMAP_MAYMOVE);
	ck_assert_ptr_ne(to, MAP_FAILED);
	ck_assert(!mrf_watch_on(&w[1]));
	ck_assert(is_free(to + CHUNK));
	ck_assert_uint_eq(mrf_ground_count(), 0);
	munmap(to, 4 * CHUNK);
}
END_TEST

/* What a mapping grows by is no ground, and not registered. */
START_TEST(ground_does_not_grow_with_the_heap)
{
	char *mem, *more;

	if (!have)
		return;
	mem = sbrk(8 * PAGE);
	mem = (char *)(((uintptr_t)mem + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	memset(mem, 1, 7 * PAGE);
	ck_assert_int_eq(watch(0, mem + 2 * PAGE, 5), 0);
	more = sbrk(8 * PAGE);
	*more = 1;
	ck_assert(!is_free(mem + 6 * PAGE) && is_free(mem + 8 * PAGE));
	sbrk(-16 * (intptr_t)PAGE);
	ck_assert(!mrf_watch_on(&w[0]));
	ck_assert(!is_ground(mem + 6 * PAGE, 1));
}
END_TEST

static char *gone;

static void *unmap_it(void *arg)
{
	syscall(SYS_munmap, gone, PAGE);
	return arg;
}

/*
 * Between a change that goes around the hooks and the reading of its event, the address may be
 * another mapping's already, of which no event will tell.
 */
START_TEST(nothing_is_watched_in_ground_before_the_event_of_a_change_is_read)
{
	char *mem = map_chunks(1);
	pthread_t thread;
	unsigned char in;
	void *got;
	int ret;

	if (!have)
		return;
	gone = mem + 3 * PAGE;
	ck_assert_int_eq(watch(0, mem, 1), 0);
	ck_assert_int_eq(watch(1, gone, 1), 0);
	unwatch(1);
	mrf_monitor_lock();
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_it, NULL), 0);
	while (!mincore(gone, PAGE, &in))
		usleep(100);
	got = (void *)syscall(SYS_mmap, gone, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(got, gone);
	ck_assert(is_ground(gone, 1));
	ret = mrf_monitor_watch_locked(&w[1]);
	ck_assert_int_eq(ret, -FI_EAGAIN);
	ck_assert(!mrf_watch_on(&w[1]));
	mrf_monitor_unlock();
	pthread_join(thread, NULL);
	mrf_monitor_settle();
	ck_assert(!is_ground(gone, 1));
	ck_assert_int_eq(watch(1, gone, 1), 0);
	munmap(mem, CHUNK);
}
END_TEST

static TCase *table(void)
{
	TCase *tc = tcase_create("table");

	tcase_add_test(tc, ground_is_found_by_any_byte_and_by_no_other);
	tcase_add_test(tc, ground_is_cut_exactly);
	tcase_add_test(tc, ground_without_room_loses_the_smaller_part);
	tcase_add_test(tc, ground_that_is_cut_is_met_once);
	return tc;
}

static TCase *kernel(void)
{
	TCase *tc = tcase_create("kernel");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_chunk_is_registered_twice_and_never_again);
	tcase_add_test(tc, ground_is_one_mapping);
	tcase_add_test(tc, ground_leaves_out_another_userfaultfds_memory);
	tcase_add_test(tc, ground_goes_with_the_monitor);
	tcase_add_test(tc, ground_that_nobody_uses_gives_way);
	tcase_add_test(tc, hooks_find_what_is_watched_without_ground);
	tcase_add_test(tc, hooks_find_what_loses_its_ground_meanwhile);
	tcase_add_test(tc, ground_is_not_a_childs);
	tcase_add_loop_test(tc, ground_goes_when_its_memory_changes, 0, 2 * WAYS);
	tcase_add_test(tc, a_mapping_with_ground_in_it_can_be_moved_and_grow);
	tcase_add_test(tc, ground_does_not_grow_with_the_heap);
	tcase_add_test(tc, nothing_is_watched_in_ground_before_the_event_of_a_change_is_read);
	return tc;
}

UNIT_MAIN("ground", table, kernel)

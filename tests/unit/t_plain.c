/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/maps.h"
#include "base/plain.h"
#include "unit.h"

#define PAGE 4096u

static bool old_kernel; /* it does not know the question about one mapping */

int __real_mrf_maps_query(uint64_t addr, struct mrf_mapping *mapping);
int __wrap_mrf_maps_query(uint64_t addr, struct mrf_mapping *mapping);

int __wrap_mrf_maps_query(uint64_t addr, struct mrf_mapping *mapping)
{
	return old_kernel ? -ENOSYS : __real_mrf_maps_query(addr, mapping);
}

static char *map(size_t pages, int prot, int flags, int fd)
{
	char *mem = mmap(NULL, pages * PAGE, prot, flags, fd, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

static bool plain(const void *at, size_t len, bool write)
{
	return mrf_plain((uintptr_t)at, (uintptr_t)at + len, write);
}

static void setup(void)
{
	mrf_maps_keep();
}

static void teardown(void)
{
	mrf_maps_let_go();
	old_kernel = false;
}

/* Each kind of mapping, with what may be done there. */
START_TEST(what_may_be_pinned_is_said)
{
	static const struct {
		int prot, flags;
		bool read, write;
	} kinds[] = {
		{ PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, true, true },
		{ PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, true, true },
		{ PROT_READ, MAP_SHARED | MAP_ANONYMOUS, true, false },
		{ PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, false, false },
		{ PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, false, false },
	};
	unsigned i;

	old_kernel = _i;
	for (i = 0; i < MRF_ARRAY_SIZE(kinds); i++) {
		char *mem = map(2, kinds[i].prot, kinds[i].flags, -1);

		ck_assert_int_eq(plain(mem, PAGE, false), kinds[i].read);
		ck_assert_int_eq(plain(mem + 5, 8, true), kinds[i].write);
		ck_assert_int_eq(plain(mem + PAGE - 4, 8, true), kinds[i].write);
		munmap(mem + PAGE, PAGE);
		errno = 77;
		ck_assert(!plain(mem + PAGE - 4, 8, false));
		ck_assert(!plain(mem + PAGE, 1, false));
		ck_assert_int_eq(errno, 77);
		munmap(mem, PAGE);
	}
}
END_TEST

START_TEST(memory_of_a_file_ends_where_the_file_does)
{
	int fd = memfd_create("t_plain", 0);
	char *mem;

	old_kernel = _i;
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	mem = map(2, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	ck_assert(plain(mem, PAGE, true));
	/* One mapping does not show that (from Linux 6.11 on). The kernel that pins it will. */
	if (_i)
		ck_assert(!plain(mem + PAGE, 8, true));
	munmap(mem, 2 * PAGE);
	close(fd);
}
END_TEST

/* Long ranges are left to those who read the mappings. */
START_TEST(few_pages_are_asked_about_one_by_one)
{
	char *mem = map(32, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

	old_kernel = true;
	ck_assert(plain(mem, 16 * PAGE, true));
	ck_assert(!plain(mem, 16 * PAGE + 1, true));
	munmap(mem, 32 * PAGE);
}
END_TEST

static void *wait_there(void *futex)
{
	while (syscall(SYS_futex, futex, FUTEX_WAIT, 0, NULL, NULL, 0) && errno == EINTR)
		;
	return NULL;
}

/* The first word of the page is somebody's futex. */
START_TEST(who_waits_in_the_page_goes_on_waiting)
{
	int *mem = (int *)map(1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	pthread_t thread;
	unsigned i;

	old_kernel = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, mem), 0);
	for (i = 0; i < 1000; i++)
		ck_assert(plain(mem, PAGE, true));
	while (!syscall(SYS_futex, mem, FUTEX_WAKE, 1, NULL, NULL, 0))
		ck_assert(plain(mem, PAGE, true));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	munmap(mem, PAGE);
}
END_TEST

static TCase *tcase_plain(void)
{
	TCase *tc = tcase_create("plain");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, what_may_be_pinned_is_said, 0, 2);
	tcase_add_loop_test(tc, memory_of_a_file_ends_where_the_file_does, 0, 2);
	tcase_add_test(tc, few_pages_are_asked_about_one_by_one);
	tcase_add_test(tc, who_waits_in_the_page_goes_on_waiting);
	return tc;
}

UNIT_MAIN("plain", tcase_plain)

/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "base/page.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGES 8

static size_t page;
static char *mem;
static char text[256];

static void setup(void)
{
	page = mrf_page_size();
	mem = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	/* What this allocates for good must not land in the holes that tests make. */
	mrf_page_explain(mem, page, true, text, sizeof(text));
}

static void teardown(void)
{
	munmap(mem, PAGES * page);
}

static const char *explain(size_t from, size_t len, bool write)
{
	mrf_page_explain(mem + from, len, write, text, sizeof(text));
	return text;
}

static const char *bytes(size_t first, size_t last, const char *what)
{
	static char want[256];

	snprintf(want, sizeof(want), "bytes %zu..%zu of it %s", first, last, what);
	return want;
}

START_TEST(page_size_is_the_systems)
{
	ck_assert_uint_eq(mrf_page_size(), (size_t)sysconf(_SC_PAGESIZE));
	ck_assert_uint_eq(mrf_page_size() & (mrf_page_size() - 1), 0);
}
END_TEST

START_TEST(page_explain_finds_nothing_wrong_with_mapped_memory)
{
	ck_assert_str_eq(explain(0, PAGES * page, true), "all of it is mapped");
	ck_assert_str_eq(explain(5, 1, true), "all of it is mapped");
	ck_assert_str_eq(explain(5, 0, true), "all of it is mapped");
}
END_TEST

START_TEST(page_explain_names_the_bytes_that_are_not_mapped)
{
	munmap(mem + 2 * page, 3 * page);
	ck_assert_str_eq(explain(0, PAGES * page, false),
			 bytes(2 * page, 5 * page - 1, "are not mapped"));
	ck_assert_str_eq(explain(page + 10, 2 * page, false),
			 bytes(page - 10, 2 * page - 1, "are not mapped"));
	ck_assert_str_eq(explain(3 * page + 7, 4 * page, true),
			 bytes(0, 2 * page - 8, "are not mapped"));
	ck_assert_str_eq(explain(0, 2 * page, true), "all of it is mapped");
	ck_assert_str_eq(explain(5 * page, 3 * page, true), "all of it is mapped");
}
END_TEST

START_TEST(page_explain_names_the_bytes_that_are_read_only)
{
	mprotect(mem + page, 2 * page, PROT_READ);
	ck_assert_str_eq(explain(0, PAGES * page, true),
			 bytes(page, 3 * page - 1, "are mapped read-only"));
	ck_assert_str_eq(explain(0, PAGES * page, false), "all of it is mapped");
}
END_TEST

START_TEST(page_explain_names_the_bytes_without_any_right)
{
	mprotect(mem + 7 * page, page, PROT_NONE);
	ck_assert_str_eq(explain(6 * page, 2 * page, false),
			 bytes(page, 2 * page - 1, "are mapped without any right"));
}
END_TEST

START_TEST(page_explain_names_the_first_of_several_troubles)
{
	mprotect(mem + page, page, PROT_READ);
	munmap(mem + 2 * page, page);
	ck_assert_str_eq(explain(0, PAGES * page, true),
			 bytes(page, 2 * page - 1, "are mapped read-only"));
	ck_assert_str_eq(explain(0, PAGES * page, false),
			 bytes(2 * page, 3 * page - 1, "are not mapped"));
}
END_TEST

START_TEST(page_explain_mentions_a_shared_mapping_that_cannot_be_written)
{
	ck_assert_ptr_ne(mmap(mem + page, 2 * page, PROT_READ,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 MAP_FAILED);
	explain(0, PAGES * page, false);
	ck_assert_ptr_eq(strstr(text, bytes(page, 3 * page - 1, "are a read-only shared mapping")),
			 text);
	/* What is wrong on every kernel goes first, wherever it is. */
	munmap(mem + 6 * page, page);
	ck_assert_str_eq(explain(0, PAGES * page, false),
			 bytes(6 * page, 7 * page - 1, "are not mapped"));
}
END_TEST

START_TEST(page_explain_mentions_a_mapping_that_can_only_be_written)
{
	mprotect(mem + page, 2 * page, PROT_WRITE);
	explain(0, PAGES * page, false);
	ck_assert_ptr_eq(strstr(text, bytes(page, 3 * page - 1, "are mapped write-only")), text);
	ck_assert_str_eq(explain(0, PAGES * page, true), "all of it is mapped");
}
END_TEST

START_TEST(page_explain_names_the_bytes_past_the_end_of_the_file)
{
	int fd = memfd_create("cut", MFD_CLOEXEC), shared;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 2 * (off_t)page + 1), 0);
	for (shared = 0; shared < 2; shared++) {
		ck_assert_ptr_ne(mmap(mem + page, 5 * page, PROT_READ | (shared ? 0 : PROT_WRITE),
				      MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE), fd, 0),
				 MAP_FAILED);
		ck_assert_str_eq(
			explain(5, 7 * page, false),
			bytes(4 * page - 5, 6 * page - 6, "are past the end of the mapped file"));
		ck_assert_str_eq(explain(5 * page, 10, false),
				 bytes(0, 9, "are past the end of the mapped file"));
	}
	close(fd);
}
END_TEST

/* The kernel's own, which the processor's clock is read from. */
START_TEST(page_explain_names_what_the_kernel_never_pins)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[256];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[vvar]"))
			start = strtoul(line, NULL, 16);
	}
	fclose(maps);
	if (!start)
		return;
	mrf_page_explain((void *)start, page, false, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "are device or kernel memory"));
}
END_TEST

#define HUGE (2ul << 20)

START_TEST(page_explain_says_that_no_huge_page_is_free)
{
	void *huge = mmap(NULL, 512 * HUGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB, -1, 0);

	/* Of none there are so many. */
	if (huge == MAP_FAILED)
		return;
	mrf_page_explain(huge, 512 * HUGE, true, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "need a huge page, and none is free"));
	munmap(huge, 512 * HUGE);
}
END_TEST

START_TEST(page_explain_copes_with_the_end_of_the_address_space)
{
	mrf_page_explain((void *)(UINTPTR_MAX - 4), 100, true, text, sizeof(text));
	ck_assert_str_eq(text, bytes(0, 3, "are not mapped"));
	mrf_page_explain(NULL, 10, true, text, sizeof(text));
	ck_assert_str_eq(text, bytes(0, 9, "are not mapped"));
}
END_TEST

START_TEST(page_explain_is_cut_to_the_buffer)
{
	char small[8] = "xxxxxxx";

	mrf_page_explain(mem, page, true, small, 5);
	ck_assert_str_eq(small, "all ");
	ck_assert_int_eq(small[5], 'x');
}
END_TEST

static const char *memlock(uint64_t limit, uint64_t used, bool exempt, size_t len)
{
	struct mrf_page_memlock lock = { .limit = limit, .used = used, .exempt = exempt };

	mrf_page_memlock_text(&lock, len, text, sizeof(text));
	return text;
}

START_TEST(page_memlock_text_names_limit_use_and_need)
{
	char want[256];

	snprintf(want, sizeof(want),
		 "the locked-memory limit (ulimit -l) is %zu bytes, %zu of them are in "
		 "use "
		 "and %zu more are needed",
		 4 * page, 3 * page, 2 * page);
	ck_assert_str_eq(memlock(4 * page, 3 * page, false, page + 1), want);
	ck_assert_ptr_nonnull(strstr(memlock(0, 0, false, 1), "is 0 bytes"));
	ck_assert_ptr_nonnull(strstr(memlock(page, 2 * page, false, 1), "more are needed"));
	ck_assert_ptr_nonnull(strstr(memlock(page, 0, false, SIZE_MAX), "more are needed"));
}
END_TEST

START_TEST(page_memlock_text_says_when_it_is_not_the_reason)
{
	ck_assert_ptr_nonnull(strstr(memlock(4 * page, 3 * page, false, page), "leaves room"));
	ck_assert_ptr_nonnull(strstr(memlock(UINT64_MAX, 5, false, page), "not limited here (5"));
	ck_assert_ptr_nonnull(strstr(memlock(1, 0, true, 2 * page), "not limited here"));
}
END_TEST

START_TEST(page_memlock_reads_the_limit_in_force)
{
	struct mrf_page_memlock lock;
	struct rlimit old, limit;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	limit = old;
	limit.rlim_cur = 3 * page < old.rlim_max ? 3 * page : old.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	mrf_page_memlock_read(&lock);
	ck_assert_uint_eq(lock.limit, limit.rlim_cur);
	ck_assert_uint_eq(lock.used, 0); /* nothing here pins memory */
	mrf_page_explain_memlock(8 * page, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, lock.exempt ? "not limited" : "more are needed"));
	setrlimit(RLIMIT_MEMLOCK, &old);
}
END_TEST

static TCase *tcase_page(void)
{
	TCase *tcase = tcase_create("page");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, page_size_is_the_systems);
	tcase_add_test(tcase, page_explain_finds_nothing_wrong_with_mapped_memory);
	tcase_add_test(tcase, page_explain_names_the_bytes_that_are_not_mapped);
	tcase_add_test(tcase, page_explain_names_the_bytes_that_are_read_only);
	tcase_add_test(tcase, page_explain_names_the_bytes_without_any_right);
	tcase_add_test(tcase, page_explain_names_the_first_of_several_troubles);
	tcase_add_test(tcase, page_explain_mentions_a_shared_mapping_that_cannot_be_written);
	tcase_add_test(tcase, page_explain_mentions_a_mapping_that_can_only_be_written);
	tcase_add_test(tcase, page_explain_names_the_bytes_past_the_end_of_the_file);
	tcase_add_test(tcase, page_explain_names_what_the_kernel_never_pins);
	tcase_add_test(tcase, page_explain_says_that_no_huge_page_is_free);
	tcase_add_test(tcase, page_explain_copes_with_the_end_of_the_address_space);
	tcase_add_test(tcase, page_explain_is_cut_to_the_buffer);
	tcase_add_test(tcase, page_memlock_text_names_limit_use_and_need);
	tcase_add_test(tcase, page_memlock_text_says_when_it_is_not_the_reason);
	tcase_add_test(tcase, page_memlock_reads_the_limit_in_force);
	return tcase;
}

UNIT_MAIN("page", tcase_page)

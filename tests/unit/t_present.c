/* SPDX-License-Identifier: BSD-2-Clause */
/* Which pages have memory. */
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/present.h"
#include "unit.h"

#define PAGE 4096u
#define MANY 10000u /* pages: several of the kernel's answers */

static char *mem;
static unsigned char is[MANY]; /* found to be there */
static unsigned runs, give_up;

static int found(void *arg, uint64_t start, uint64_t end)
{
	uint64_t at = (uintptr_t)mem;

	ck_assert_ptr_eq(arg, is);
	ck_assert(start < end && !(start % PAGE) && !(end % PAGE));
	if (++runs == give_up)
		return -FI_ENOMEM;
	for (; start < end; start += PAGE) {
		/* Of the whole address space only what is ours. */
		if (start >= at && start < at + MANY * PAGE)
			is[(start - at) / PAGE]++;
	}
	return 0;
}

static struct mrf_present make(uint64_t patience)
{
	memset(is, 0, sizeof(is));
	runs = give_up = 0;
	return (struct mrf_present){ .found = found, .arg = is, .patience = patience };
}

static uint64_t look(uint64_t patience, uint64_t start, uint64_t end)
{
	struct mrf_present present = make(patience);

	ck_assert_int_eq(mrf_present_look(&present, start, end), 0);
	return present.patience;
}

static uint64_t look_at(uint64_t patience, unsigned page, unsigned pages)
{
	uint64_t start = (uintptr_t)mem + page * PAGE;

	return look(patience, start, start + pages * PAGE);
}

static void touch(unsigned page, unsigned pages)
{
	memset(mem + page * PAGE, 1, pages * PAGE);
}

/* Exactly these, once each. */
static void want(unsigned page, unsigned pages)
{
	unsigned i;

	for (i = 0; i < MANY; i++)
		ck_assert_msg(is[i] == (i - page < pages), "page %u: %u times", i, is[i]);
}

static void map(void)
{
	mem = mmap(NULL, MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	/* Else a page that is touched brings its neighbours. */
	madvise(mem, MANY * PAGE, MADV_NOHUGEPAGE);
}

START_TEST(what_was_touched_is_found_and_nothing_else)
{
	static const unsigned at[] = { 0, 1, 4094, 4095, 4096, 8192, MANY - 1 };
	unsigned i;

	map();
	look_at(MANY, 0, MANY);
	ck_assert_uint_eq(runs, 0);
	for (i = 0; i < MRF_ARRAY_SIZE(at); i++)
		touch(at[i], 1);
	look_at(MANY, 0, MANY);
	for (i = 0; i < MANY; i++)
		ck_assert_uint_eq(is[i],
				  i < 2 || i == MANY - 1 || i == 8192 || (i >= 4094 && i <= 4096));
	touch(3, 5000);
	look_at(MANY, 2, 5002);
	want(3, 5000);
	madvise(mem + 3 * PAGE, 4000 * PAGE, MADV_DONTNEED);
	look_at(MANY, 3, 5000);
	want(4003, 1000);
}
END_TEST

START_TEST(bytes_stand_for_their_pages)
{
	uint64_t at;

	map();
	at = (uintptr_t)mem;
	touch(0, 3);
	look(9, at + PAGE - 1, at + PAGE + 1);
	want(0, 2);
	look(9, at + PAGE, at + PAGE);
	ck_assert_uint_eq(runs, 0);
	look(9, at + PAGE + 5, at + PAGE + 6);
	want(1, 1);
}
END_TEST

START_TEST(what_is_not_mapped_or_cannot_be_accessed_is_left_out)
{
	map();
	touch(0, 100);
	munmap(mem + 10 * PAGE, 10 * PAGE);
	mprotect(mem + 90 * PAGE, 10 * PAGE, PROT_NONE);
	look_at(MANY, 10, 10);
	ck_assert_uint_eq(runs, 0);
	look_at(MANY, 5, 15);
	want(5, 5);
	look_at(MANY, 15, 105);
	want(20, 70);
	/* What is not mapped needs no patience. */
	ck_assert_uint_eq(look_at(1000, 10, 90), 1000);
}
END_TEST

/* Not from its beginning: the shadow of a sanitizer needs more patience than anybody has. */
START_TEST(the_look_may_go_to_the_end_of_the_address_space)
{
	uint64_t at;

	map();
	at = (uintptr_t)mem;
	touch(7, 8);
	look(1u << 30, at > 1ul << 36 ? at - (1ul << 36) : 0, UINT64_MAX);
	want(7, 8);
}
END_TEST

START_TEST(patience_is_for_pages_without_memory_only)
{
	map();
	touch(0, 9000);
	ck_assert_uint_eq(look_at(1, 0, 9000), 1);
	want(0, 9000);
	ck_assert_uint_eq(look_at(5000, 0, MANY), 4000);
	ck_assert_uint_eq(look_at(1000, 0, MANY), 0);
	want(0, 9000);
	touch(9999, 1);
	ck_assert_uint_eq(look_at(999, 0, MANY), 0);
	want(0, 9000);
	ck_assert_uint_eq(look_at(1000, 0, MANY), 1);
	ck_assert_uint_eq(is[9999], 1);
}
END_TEST

/* What is found is a list that somebody keeps. */
START_TEST(a_small_gap_takes_as_much_patience_as_a_larger_one)
{
	unsigned i;

	map();
	for (i = 0; i < 200; i += 2)
		touch(i, 1);
	ck_assert_uint_eq(look_at(10 * MRF_PRESENT_GAP, 0, 200), 0);
	ck_assert_uint_eq(runs, 10);
}
END_TEST

START_TEST(an_error_ends_the_look)
{
	struct mrf_present present;
	uint64_t at;

	map();
	at = (uintptr_t)mem;
	touch(1, 1);
	touch(3, 1);
	touch(5, 1);
	for (unsigned i = 0; i < 2; i++) {
		present = make(MANY);
		give_up = 2;
		ck_assert_int_eq(mrf_present_look(&present, at, at + 9 * PAGE), -FI_ENOMEM);
		ck_assert_uint_eq(runs, 2);
		/* And where the mappings have to be looked up. */
		munmap(mem, PAGE);
	}
}
END_TEST

static TCase *looking(void)
{
	TCase *tc = tcase_create("looking");

	tcase_add_test(tc, what_was_touched_is_found_and_nothing_else);
	tcase_add_test(tc, bytes_stand_for_their_pages);
	tcase_add_test(tc, what_is_not_mapped_or_cannot_be_accessed_is_left_out);
	tcase_add_test(tc, the_look_may_go_to_the_end_of_the_address_space);
	tcase_add_test(tc, patience_is_for_pages_without_memory_only);
	tcase_add_test(tc, a_small_gap_takes_as_much_patience_as_a_larger_one);
	tcase_add_test(tc, an_error_ends_the_look);
	return tc;
}

UNIT_MAIN("present", looking)

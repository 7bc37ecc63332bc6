/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hooks hear of the allocator. */
#include "hooked.h"

/* What is there instead of a block, to be freed. */
static void *moved;

static void by_free(void *mem)
{
	free(mem);
}

static void by_growing(void *mem)
{
	moved = realloc(mem, 64 * BIG);
	ck_assert_ptr_nonnull(moved);
}

static void by_shrinking(void *mem)
{
	moved = realloc(mem, 1000);
	ck_assert_ptr_nonnull(moved);
}

static void by_a_little(void *mem)
{
	moved = realloc(mem, BIG / 2);
	ck_assert_ptr_nonnull(moved);
}

static void by_nothing(void *mem)
{
	moved = realloc(mem, 0);
}

static void by_reallocarray(void *mem)
{
	moved = reallocarray(mem, 64, BIG);
	ck_assert_ptr_nonnull(moved);
}

static void (*const frees[])(void *mem) = {
	by_free, by_growing, by_shrinking, by_a_little, by_nothing, by_reallocarray,
};

START_TEST(a_block_of_its_own_is_heard_of_with_its_first_and_last_byte)
{
	unsigned i;
	char *mem;

	for (i = 0; i < 2; i++) {
		mem = big();
		watch(i ? mem : mem + BIG - 1);
		moved = NULL;
		frees[_i](mem);
		if (OWN_HEAP)
			must_have_heard();
		free(moved);
	}
}
END_TEST

START_TEST(an_aligned_block_is_heard_of_wherever_it_begins)
{
	size_t align;
	char *mem;

	mallopt(M_MMAP_THRESHOLD, BIG / 4);
	for (align = 16; align <= 4 * BIG; align *= 2) {
		mem = memalign(align, BIG);
		memset(mem, 42, BIG);
		watch(mem + BIG - 1);
		free(mem);
		if (OWN_HEAP)
			must_have_heard();
	}
}
END_TEST

START_TEST(small_blocks_concern_nobody)
{
	void *mem[100];
	unsigned i;

	for (i = 0; i < 100; i++)
		mem[i] = malloc(i * 10);
	watch(mem[0]);
	free(NULL);
	for (i = 0; i < 100; i++)
		free(realloc(mem[i], i * 20));
	ck_assert_uint_eq(atomic_load(&told), 0);
}
END_TEST

/* Blocks of the heap, of which the upper one is freed. */
static char *top_of_heap(void)
{
	char *mem;

	mallopt(M_MMAP_THRESHOLD, 16 * BIG);
	mem = malloc(4 * BIG);
	memset(mem, 42, 4 * BIG);
	return mem;
}

START_TEST(a_heap_that_ends_earlier_is_reported_at_once)
{
	char *mem;

	mallopt(M_TRIM_THRESHOLD, BIG / 4);
	mem = top_of_heap();
	watch(mem + 2 * BIG);
	free(mem);
	if (OWN_HEAP) {
		ck_assert_uint_lt((uintptr_t)sbrk(0), (uintptr_t)want);
		ck_assert_uint_eq(atomic_load(&heard), 1);
	}
}
END_TEST

START_TEST(a_heap_that_is_kept_does_not_end_earlier)
{
	char *mem, *end;

	mrf_hooks_keep_heap();
	mem = top_of_heap();
	end = sbrk(0);
	watch(mem + 2 * BIG);
	free(mem);
	must_not_have_heard();
	ck_assert_ptr_eq(sbrk(0), end);
}
END_TEST

START_TEST(trimming_is_heard_of_before_it_is_done)
{
	char *mem, *hole;

	mallopt(M_TRIM_THRESHOLD, 64 * BIG);
	hole = top_of_heap();
	mem = top_of_heap();
	watch(hole + BIG);
	free(hole);
	must_not_have_heard();
	malloc_trim(0);
	if (OWN_HEAP)
		ck_assert_uint_eq(atomic_load(&heard), 1);
	free(mem);
}
END_TEST

/* What the C library frees by its own slot. */
START_TEST(a_block_that_getline_moves_is_heard_of)
{
	size_t len = BIG;
	char *line = big();
	FILE *file = tmpfile();
	unsigned i;

	for (i = 0; i < 4 * BIG; i++)
		fputc('x', file);
	rewind(file);
	watch(line);
	ck_assert_int_eq(getline(&line, &len, file), 4 * BIG);
	if (OWN_HEAP)
		ck_assert_uint_ge(atomic_load(&heard), 1);
	fclose(file);
	free(line);
}
END_TEST

static TCase *allocator(void)
{
	TCase *tc = tcase_create("allocator");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, a_block_of_its_own_is_heard_of_with_its_first_and_last_byte, 0,
			    MRF_ARRAY_SIZE(frees));
	tcase_add_test(tc, an_aligned_block_is_heard_of_wherever_it_begins);
	tcase_add_test(tc, small_blocks_concern_nobody);
	tcase_add_test(tc, a_heap_that_ends_earlier_is_reported_at_once);
	tcase_add_test(tc, a_heap_that_is_kept_does_not_end_earlier);
	tcase_add_test(tc, trimming_is_heard_of_before_it_is_done);
	tcase_add_test(tc, a_block_that_getline_moves_is_heard_of);
	return tc;
}

UNIT_MAIN("hook_heap", allocator)

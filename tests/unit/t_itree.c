/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interval tree against an array that is searched from end to end, its depth, and
 * readers without a lock beside a writer.
 */
#include <pthread.h>
#include <stdlib.h>
#include "base/compiler.h"
#include "base/itree.h"
#include "every.h"
#include "unit.h"

#define LINE 1000u
#define MOST 300u

static struct mrf_itree tree;

static bool fail_alloc;

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fail_alloc ? NULL : __real_aligned_alloc(align, size);
}

/* --- against an array ------------------------------------------------------------- */

static struct mrf_itree_node *in[MOST];
static unsigned count;

static uintptr_t start_of(unsigned i)
{
	return mrf_itree_start(in[i]);
}

static uintptr_t end_of(unsigned i)
{
	return mrf_itree_end(in[i]);
}

/* As the tree orders them. */
static bool order(const struct mrf_itree_node *a, const struct mrf_itree_node *b)
{
	uintptr_t x = mrf_itree_start(a), y = mrf_itree_start(b);

	return x < y || (x == y && (uintptr_t)a < (uintptr_t)b);
}

/* The first in order behind another (NULL: of all) that overlaps. */
static struct mrf_itree_node *naive_next(const struct mrf_itree_node *behind, uintptr_t start,
					 uintptr_t end)
{
	struct mrf_itree_node *best = NULL;
	unsigned i;

	for (i = 0; i < count; i++) {
		if (start_of(i) >= end || end_of(i) <= start || (behind && !order(behind, in[i])))
			continue;
		if (!best || order(in[i], best))
			best = in[i];
	}
	return best;
}

static struct mrf_itree_node *naive_below(uintptr_t addr)
{
	struct mrf_itree_node *best = NULL;
	unsigned i;

	for (i = 0; i < count; i++) {
		if (start_of(i) <= addr && (!best || order(best, in[i])))
			best = in[i];
	}
	return best;
}

static void must_agree(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *want = naive_next(NULL, start, end);
	struct mrf_itree_node *got = mrf_itree_first(&tree, start, end);
	struct mrf_itree_hit hit = { 0 };

	ck_assert_int_eq(mrf_itree_try_first(&tree, start, end, &hit),
			 want ? MRF_ITREE_HIT : MRF_ITREE_NONE);
	ck_assert_ptr_eq(hit.value, want);
	ck_assert_ptr_eq(got, want);
	for (; want; want = naive_next(want, start, end)) {
		ck_assert_ptr_eq(got, want);
		ck_assert_ptr_eq(mrf_itree_value(got), got);
		got = mrf_itree_next(&tree, got, start, end);
	}
	ck_assert_ptr_null(got);
}

static void must_agree_below(uintptr_t addr)
{
	struct mrf_itree_node *want = naive_below(addr);
	struct mrf_itree_hit hit = { 0 };

	ck_assert_ptr_eq(mrf_itree_below(&tree, addr), want);
	ck_assert_int_eq(mrf_itree_try_below(&tree, addr, &hit),
			 want ? MRF_ITREE_HIT : MRF_ITREE_NONE);
	ck_assert_ptr_eq(hit.value, want);
	if (want) {
		ck_assert_uint_eq(hit.start, mrf_itree_start(want));
		ck_assert_uint_eq(hit.end, mrf_itree_end(want));
	}
}

static void add(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *node = mrf_itree_node_new();

	ck_assert_ptr_nonnull(node);
	ck_assert(!mrf_itree_linked(node));
	mrf_itree_insert(&tree, node, start, end, node);
	ck_assert(mrf_itree_linked(node));
	in[count++] = node;
}

static void take(unsigned i)
{
	mrf_itree_remove(&tree, in[i]);
	ck_assert(!mrf_itree_linked(in[i]));
	mrf_itree_node_free(in[i]);
	in[i] = in[--count];
}

static uintptr_t any(uintptr_t below)
{
	return (uintptr_t)random() % below;
}

/* The longest way from the root, in nodes. */
static unsigned depth(void)
{
	const struct mrf_itree_node *root = atomic_load(&tree.root);

	return root ? root->height : 0;
}

START_TEST(it_agrees_with_an_array)
{
	unsigned i, most = _i ? MOST : 8, width = _i % 2 ? 3 : LINE / 2;
	uintptr_t start;

	srandom((unsigned)_i);
	for (i = 0; i < 6000 / every(); i++) {
		start = any(LINE);
		if (count < most && (!count || any(5) < 3))
			add(start, start + 1 + any(width));
		else
			take((unsigned)any(count));
		start = any(LINE);
		must_agree(start, start + 1 + any(width));
		must_agree_below(any(LINE));
		ck_assert_uint_le(depth(), 12);
	}
	while (count)
		take(0);
	ck_assert_ptr_null(mrf_itree_first(&tree, 0, UINTPTR_MAX));
	must_agree(0, UINTPTR_MAX);
}
END_TEST

START_TEST(without_memory_there_is_no_node)
{
	struct mrf_itree_node *node[1000];
	unsigned i, n = 0;

	fail_alloc = true;
	while (n < 1000 && (node[n] = mrf_itree_node_new()))
		n++;
	ck_assert_uint_lt(n, 1000);
	fail_alloc = false;
	node[n] = mrf_itree_node_new();
	ck_assert_ptr_nonnull(node[n]);
	for (i = 0; i <= n; i++)
		mrf_itree_node_free(node[i]);
	mrf_itree_node_free(NULL);
}
END_TEST

/* --- depth ------------------------------------------------------------------------ */

#define MANY 100000u

static struct mrf_itree_node *many[MANY];

/* Sorted, the other way round, from both ends, and in no order. */
static uintptr_t place(unsigned how, unsigned i)
{
	switch (how) {
	case 0:
		return i;
	case 1:
		return MANY - i;
	case 2:
		return i % 2 ? i : 2 * MANY - i;
	default:
		return (uintptr_t)random();
	}
}

START_TEST(a_hundred_thousand_are_at_most_24_deep)
{
	unsigned i, n = MANY / every();

	for (i = 0; i < n; i++) {
		uintptr_t start = place((unsigned)_i, i) * 16;

		many[i] = mrf_itree_node_new();
		mrf_itree_insert(&tree, many[i], start, start + 16, NULL);
	}
	/* 1.44 times the logarithm of MANY. */
	ck_assert_uint_le(depth(), 24);
	for (i = 0; i < n; i += 2)
		mrf_itree_remove(&tree, many[i]);
	ck_assert_uint_le(depth(), 23);
	for (i = 1; i < n; i += 2)
		mrf_itree_remove(&tree, many[i]);
	for (i = 0; i < n; i++)
		mrf_itree_node_free(many[i]);
}
END_TEST

/* --- beside a writer -------------------------------------------------------------- */

#define THERE 64u /* intervals that stay: [64 i, 64 i + 32), with this value */
static char values[THERE];
static struct mrf_itree other;
static atomic_bool ended;
static atomic_uint hits, busy;

/* What is found is one interval as it was put in, and those that stay are always found. */
static void *read_on(void *arg)
{
	unsigned i = 0;

	(void)arg;
	while (!atomic_load(&ended)) {
		struct mrf_itree_hit hit;
		enum mrf_itree_look look;

		i = (i + 7) % THERE;
		look = mrf_itree_try_below(&tree, i * 64 + 40, &hit);
		if (look == MRF_ITREE_HIT)
			ck_assert_uint_eq(hit.end - hit.start, hit.start % 64 ? 5 : 32);
		look = mrf_itree_try_first(&tree, i * 64, i * 64 + 1, &hit);
		ck_assert_int_ne(look, MRF_ITREE_NONE);
		atomic_fetch_add(look == MRF_ITREE_HIT ? &hits : &busy, 1);
		if (look == MRF_ITREE_HIT)
			ck_assert_ptr_eq(hit.value, &values[i]);
	}
	return NULL;
}

/* Nodes come and go, and go to another tree, where other values are. */
static void *write_on(void *arg)
{
	struct mrf_itree_node *node[32];
	unsigned i, round;

	(void)arg;
	for (round = 0; round < 2000 / every(); round++) {
		for (i = 0; i < 32; i++) {
			uintptr_t at = 64 * ((round + i) % THERE) + 33 + i % 8;

			node[i] = mrf_itree_node_new();
			mrf_itree_insert(&tree, node[i], at, at + 5, &ended);
		}
		for (i = 0; i < 32; i++) {
			mrf_itree_remove(&tree, node[i]);
			mrf_itree_insert(&other, node[i], i, 100000, &other);
		}
		for (i = 0; i < 32; i++) {
			mrf_itree_remove(&other, node[i]);
			mrf_itree_node_free(node[i]);
		}
	}
	return NULL;
}

START_TEST(readers_without_a_lock_see_what_is_there)
{
	pthread_t reader[2], writer;
	unsigned i;

	for (i = 0; i < THERE; i++) {
		add(i * 64, i * 64 + 32);
		mrf_itree_remove(&tree, in[i]);
		mrf_itree_insert(&tree, in[i], i * 64, i * 64 + 32, &values[i]);
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, read_on, NULL), 0);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_on, NULL), 0);
	pthread_join(writer, NULL);
	atomic_store(&ended, true);
	for (i = 0; i < 2; i++)
		pthread_join(reader[i], NULL);
	ck_assert_uint_gt(atomic_load(&hits), 0);
	while (count)
		take(0);
}
END_TEST

START_TEST(a_reader_gives_up_while_the_tree_is_being_changed)
{
	struct mrf_itree_hit hit;

	add(10, 20);
	atomic_fetch_add(&tree.count, 1);
	ck_assert_int_eq(mrf_itree_try_first(&tree, 10, 20, &hit), MRF_ITREE_BUSY);
	ck_assert_int_eq(mrf_itree_try_below(&tree, 10, &hit), MRF_ITREE_BUSY);
	atomic_fetch_add(&tree.count, 1);
	ck_assert_int_eq(mrf_itree_try_first(&tree, 10, 20, &hit), MRF_ITREE_HIT);
	take(0);
}
END_TEST

static TCase *itree(void)
{
	TCase *tc = tcase_create("itree");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, it_agrees_with_an_array, 0, 4);
	tcase_add_test(tc, without_memory_there_is_no_node);
	tcase_add_loop_test(tc, a_hundred_thousand_are_at_most_24_deep, 0, 4);
	tcase_add_test(tc, readers_without_a_lock_see_what_is_there);
	tcase_add_test(tc, a_reader_gives_up_while_the_tree_is_being_changed);
	return tc;
}

UNIT_MAIN("itree", itree)

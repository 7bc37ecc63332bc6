/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "unit.h"
#include "base/heap.h"

#define MANY 1000

static struct mrf_heap heap;
static struct mrf_heap_node nodes[MANY];

static void setup(void)
{
	heap = (struct mrf_heap){ 0 };
	memset(nodes, 0, sizeof(nodes));
	srandom(1);
}

static void insert(unsigned i, int64_t key)
{
	nodes[i].key = key;
	mrf_heap_insert(&heap, &nodes[i]);
}

/* The least of those that are in it, looked for one by one. */
static int64_t least(void)
{
	int64_t key = INT64_MAX;
	unsigned i;

	for (i = 0; i < MANY; i++)
		key = nodes[i].in && nodes[i].key < key ? nodes[i].key : key;
	return key;
}

START_TEST(heap_is_empty_at_first_and_at_last)
{
	ck_assert_ptr_null(heap.least);
	insert(0, -7);
	ck_assert_ptr_eq(heap.least, &nodes[0]);
	mrf_heap_remove(&heap, &nodes[0]);
	ck_assert_ptr_null(heap.least);
	/* Once more does no harm, nor does one that never was there. */
	mrf_heap_remove(&heap, &nodes[0]);
	mrf_heap_remove(&heap, &nodes[1]);
	ck_assert_ptr_null(heap.least);
}
END_TEST

START_TEST(heap_gives_its_nodes_in_order)
{
	int64_t last = INT64_MIN;
	unsigned i;

	for (i = 0; i < MANY; i++)
		insert(i, random() % 300 - 150);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_ge(heap.least->key, last);
		last = heap.least->key;
		mrf_heap_remove(&heap, heap.least);
	}
	ck_assert_ptr_null(heap.least);
}
END_TEST

START_TEST(heap_knows_its_least_whatever_comes_and_goes)
{
	unsigned i, round;

	for (round = 0; round < 20000; round++) {
		i = (unsigned)random() % MANY;
		if (nodes[i].in)
			mrf_heap_remove(&heap, &nodes[i]);
		else
			insert(i, random() % 10000);
		if (round % 16)
			continue;
		ck_assert_int_eq(heap.least ? heap.least->key : INT64_MAX, least());
	}
}
END_TEST

static TCase *tcase_heap(void)
{
	TCase *tc = tcase_create("heap");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, heap_is_empty_at_first_and_at_last);
	tcase_add_test(tc, heap_gives_its_nodes_in_order);
	tcase_add_test(tc, heap_knows_its_least_whatever_comes_and_goes);
	return tc;
}

UNIT_MAIN("heap", tcase_heap)

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues in a hash table: their order, whichever way items come in; how the table grows,
 * and what it does without memory; tags that were chosen to collide.
 */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/random.h"
#include "match/queues.h"
#include "every.h"
#include "no_room.h"
#include "unit.h"

#define MANY 100000u

struct item {
	struct mrf_queues_item item;
	uint64_t other; /* the node is not where the item ends */
	struct mrf_queues_node node;
};

static struct mrf_queues_salt salt;
static struct mrf_queues table;
static struct item items[MANY];

static void init(bool by_source, bool by_tag)
{
	mrf_queues_init(&table, &salt, by_source ? UINT64_MAX : 0, by_tag ? UINT64_MAX : 0,
			offsetof(struct item, node));
}

static void setup(void)
{
	ck_assert(mrf_random(&salt, sizeof(salt)));
	init(true, true);
	no_room = false;
	refusals = 0;
}

static void teardown(void)
{
	mrf_queues_fini(&table);
}

static struct mrf_queues_item *add(unsigned i, uint64_t source, uint64_t tag, uint64_t serial)
{
	items[i].item = (struct mrf_queues_item){ .source = source, .tag = tag, .serial = serial };
	roomless(mrf_queues_add(&table, &items[i].item));
	return &items[i].item;
}

static void take(unsigned i)
{
	mrf_queues_remove(&table, &items[i].item);
}

static struct mrf_queues_item *first(uint64_t source, uint64_t tag)
{
	return mrf_queues_first(&table, source, tag);
}

/* The queue has these serials, each a digit, and nothing else. */
static void must_be(uint64_t source, uint64_t tag, const char *serials)
{
	const struct mrf_queues_item *begin = first(source, tag), *item;

	for (item = begin; item; item = mrf_queues_next(&table, begin, item), serials++)
		ck_assert_uint_eq(item->serial, (uint64_t)(*serials - '0'));
	ck_assert_int_eq(*serials, '\0');
}

/* --- order -------------------------------------------------------------------------- */

START_TEST(queue_is_in_the_order_of_serials_whatever_comes_first)
{
	static const char *const orders[] = { "123", "132", "213", "231", "312", "321" };
	unsigned i;

	for (i = 0; i < 3; i++)
		add(i, 7, 8, (uint64_t)(orders[_i][i] - '0'));
	ck_assert_uint_eq(table.queues, 1);
	must_be(7, 8, "123");
}
END_TEST

/*
 * The first, the middle one and the last leave, in each order; a neighbour in the slot
 * stays.
 */
START_TEST(queue_closes_up_when_an_item_leaves)
{
	static const char *const left[][2] = { { "23", "3" }, { "23", "2" }, { "13", "3" },
					       { "13", "1" }, { "12", "2" }, { "12", "1" } };
	static const unsigned order[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	unsigned i;

	no_room = true;
	add(8, 9, 9, 8);
	for (i = 0; i < 3; i++)
		add(i, 7, 8, i + 1);
	add(9, 6, 6, 9);
	for (i = 0; i < 3; i++) {
		take(order[_i][i]);
		must_be(7, 8, i < 2 ? left[_i][i] : "");
		must_be(9, 9, "8");
		must_be(6, 6, "9");
	}
	ck_assert_uint_eq(table.queues, 2);
}
END_TEST

START_TEST(items_differ_by_source_and_tag_or_by_one_of_them)
{
	bool by_source = _i & 1, by_tag = _i & 2;

	init(by_source, by_tag);
	add(0, 1, 1, 1);
	add(1, 1, 1ull << 63, 2);
	add(2, 1ull << 63, 1, 3);
	add(3, 1ull << 63, 1ull << 63, 4);
	must_be(1, 1, by_source ? by_tag ? "1" : "12" : by_tag ? "13" : "1234");
	must_be(1ull << 63, 1ull << 63, by_source ? by_tag ? "4" : "34" : by_tag ? "24" : "1234");
	/* What is ignored may be anything when one looks. */
	must_be(by_source ? 1 : 99, by_tag ? 1 : 99,
		by_source ? by_tag ? "1" : "12"
		: by_tag  ? "13"
			  : "1234");
	if (by_source)
		ck_assert_ptr_null(first(2, 1));
	if (by_tag)
		ck_assert_ptr_null(first(1, 2));
}
END_TEST

START_TEST(empty_table_has_nothing)
{
	ck_assert_ptr_null(first(0, 0));
	add(0, 0, 0, 0);
	ck_assert_ptr_eq(first(0, 0), &items[0].item);
	ck_assert_ptr_null(first(0, 1));
	ck_assert_ptr_null(first(1, 0));
	take(0);
	ck_assert_ptr_null(first(0, 0));
}
END_TEST

/* --- growing ------------------------------------------------------------------------ */

static unsigned longest(void)
{
	unsigned most = 0, n;
	size_t i;

	for (i = 0; i < table.count; i++) {
		const struct mrf_queues_node *node;

		for (n = 0, node = table.slots[i]; node; node = node->next)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/*
 * Dense numbers, what differs high up or low down only, and what a simple hash would
 * fold.
 */
static uint64_t tag_like(unsigned how, uint64_t i)
{
	switch (how) {
	case 0:
		return i;
	case 1:
		return i << 32;
	case 2:
		return i << 47;
	case 3:
		return i << 32 | i;
	case 4:
		return 0;
	default:
		return i << 32 | (0xffffffffull - i);
	}
}

/* Untagged messages differ by their sources only. */
static uint64_t source_like(unsigned how, uint64_t i)
{
	return how == 4 ? i : i % 3;
}

START_TEST(slots_have_few_queues_and_each_call_adds_few_slots)
{
	unsigned i, n = MANY / every();
	size_t count;

	for (i = 0; i < n; i++) {
		count = table.count;
		add(i, source_like((unsigned)_i, i), tag_like((unsigned)_i, i), i);
		ck_assert_uint_le(table.count, count + 1);
		ck_assert_uint_le(table.queues, table.count + 1);
	}
	ck_assert_uint_eq(table.queues, n);
	/* By chance more than 16 meet in one of a million such tables. */
	ck_assert_uint_le(longest(), 16);
	for (i = 0; i < n; i++)
		ck_assert_ptr_eq(first(source_like((unsigned)_i, i), tag_like((unsigned)_i, i)),
				 &items[i].item);
	for (i = 1; i < n; i += 2)
		take(i);
	for (i = 0; i < n; i++)
		ck_assert_ptr_eq(first(source_like((unsigned)_i, i), tag_like((unsigned)_i, i)),
				 i % 2 ? NULL : &items[i].item);
}
END_TEST

/* One queue needs one slot: untagged messages never need memory. */
START_TEST(long_queue_needs_no_memory)
{
	unsigned i;

	no_room = true;
	for (i = 0; i < MANY; i++)
		add(i, 1, 2, i);
	for (i = 0; i < MANY; i++) {
		ck_assert_ptr_eq(first(1, 2), &items[i].item);
		take(i);
	}
	ck_assert_uint_eq(refusals, 0);
	ck_assert_uint_eq(table.count, 1);
}
END_TEST

/* Memory ends with the first array, with a later one, and comes back. */
START_TEST(table_without_memory_works_on_and_catches_up)
{
	unsigned i, before = (unsigned[]){ 0, 16, 300 }[_i], n = before + 500;

	for (i = 0; i < n; i++) {
		no_room = i >= before;
		add(i, i, i, i);
	}
	ck_assert_uint_gt(refusals, 100);
	ck_assert_uint_lt(table.count, n - 200);
	for (i = 0; i < n; i++)
		ck_assert_ptr_eq(first(i, i), &items[i].item);
	no_room = false;
	for (; i < 2 * n; i++)
		add(i, i, i, i);
	ck_assert_uint_ge(table.count + 1, table.queues);
	for (i = 0; i < 2 * n; i++) {
		ck_assert_ptr_eq(first(i, i), &items[i].item);
		take(i);
	}
	ck_assert_uint_eq(table.queues, 0);
}
END_TEST

static void fill_and_empty(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		add(i, i, i, i);
	for (i = 0; i < n; i++)
		take(i);
}

/*
 * What comes and goes finds its array again; a million messages once do not cost memory
 * for ever.
 */
START_TEST(empty_table_keeps_a_small_array_and_gives_back_a_large_one)
{
	fill_and_empty(4000);
	ck_assert_uint_ge(table.count, 3999);
	no_room = true;
	fill_and_empty(4000);
	ck_assert_uint_eq(refusals, 0);
	no_room = false;
	fill_and_empty(4200);
	ck_assert_uint_eq(table.count, 1);
	ck_assert_uint_eq(table.room, 1);
	fill_and_empty(4000);
	ck_assert_uint_ge(table.count, 3999);
}
END_TEST

/* --- an attacker's choice ----------------------------------------------------------- */

#define TOGETHER 20u

/* Grows the table, which keeps its slots. */
static void make_slots(void)
{
	fill_and_empty(1024);
	ck_assert_uint_ge(table.count, 1023);
}

static void choose_tags(uint64_t *tags)
{
	uint64_t tag;
	unsigned n;

	for (tag = 0, n = 0; n < TOGETHER; tag++) {
		add(0, 0, tag, 0);
		if (table.slots[5])
			tags[n++] = tag;
		take(0);
	}
}

static void add_tags(const uint64_t *tags)
{
	unsigned i;

	for (i = 0; i < TOGETHER; i++)
		add(i, 0, tags[i], i);
}

START_TEST(tags_that_collide_with_one_salt_do_not_with_another)
{
	uint64_t tags[TOGETHER];

	make_slots();
	choose_tags(tags);
	add_tags(tags);
	ck_assert_uint_eq(longest(), TOGETHER);
	mrf_queues_fini(&table);
	setup();
	make_slots();
	add_tags(tags);
	ck_assert_uint_le(longest(), TOGETHER / 2);
}
END_TEST

static TCase *tcase_queues(void)
{
	TCase *tcase = tcase_create("queues");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, queue_is_in_the_order_of_serials_whatever_comes_first, 0, 6);
	tcase_add_loop_test(tcase, queue_closes_up_when_an_item_leaves, 0, 6);
	tcase_add_loop_test(tcase, items_differ_by_source_and_tag_or_by_one_of_them, 0, 4);
	tcase_add_test(tcase, empty_table_has_nothing);
	tcase_add_loop_test(tcase, slots_have_few_queues_and_each_call_adds_few_slots, 0, 6);
	tcase_add_test(tcase, long_queue_needs_no_memory);
	tcase_add_loop_test(tcase, table_without_memory_works_on_and_catches_up, 0, 3);
	tcase_add_test(tcase, empty_table_keeps_a_small_array_and_gives_back_a_large_one);
	tcase_add_test(tcase, tags_that_collide_with_one_salt_do_not_with_another);
	return tcase;
}

UNIT_MAIN("queues", tcase_queues)

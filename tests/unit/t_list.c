/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "base/list.h"

struct item {
	int number;
	struct mrf_list node;
};

#define item_of(n) mrf_list_entry(n, struct item, node)

static struct mrf_list head;
static struct item items[5];

static void setup(void)
{
	int i;

	mrf_list_init(&head);
	for (i = 0; i < 5; i++)
		items[i].number = i;
}

/* Both ways round: a list that is right forwards may be broken backwards. */
static void expect(const char *numbers)
{
	const char *c = numbers;
	struct mrf_list *back;

	mrf_list_each (pos, &head)
		ck_assert_int_eq(item_of(pos)->number, *c++ - '0');
	ck_assert_int_eq(*c, '\0');
	for (back = head.prev; back != &head; back = back->prev)
		ck_assert_int_eq(item_of(back)->number, *--c - '0');
	ck_assert_ptr_eq(c, numbers);
	ck_assert_int_eq(mrf_list_empty(&head), !*numbers);
}

START_TEST(list_keeps_the_order_it_was_filled_in)
{
	expect("");
	mrf_list_add_tail(&items[1].node, &head);
	mrf_list_add_tail(&items[2].node, &head);
	mrf_list_add_head(&items[0].node, &head);
	mrf_list_add_tail(&items[3].node, &head);
	expect("0123");
}
END_TEST

START_TEST(list_del_takes_out_any_node_even_twice)
{
	int i;

	for (i = 0; i < 5; i++)
		mrf_list_add_tail(&items[i].node, &head);
	mrf_list_del(&items[2].node);
	expect("0134");
	mrf_list_del(&items[2].node);
	expect("0134");
	mrf_list_del(&items[0].node);
	mrf_list_del(&items[4].node);
	expect("13");
	mrf_list_add_tail(&items[2].node, &head);
	expect("132");
}
END_TEST

START_TEST(list_pop_empties_it_from_the_front)
{
	int i;

	ck_assert_ptr_null(mrf_list_first(&head));
	ck_assert_ptr_null(mrf_list_pop(&head));
	for (i = 0; i < 3; i++)
		mrf_list_add_tail(&items[i].node, &head);
	ck_assert_ptr_eq(mrf_list_first(&head), &items[0].node);
	for (i = 0; i < 3; i++)
		ck_assert_ptr_eq(mrf_list_pop(&head), &items[i].node);
	ck_assert_ptr_null(mrf_list_pop(&head));
	expect("");
}
END_TEST

START_TEST(list_each_safe_allows_unlinking_and_freeing)
{
	struct item *item;
	int i, seen = 0;

	for (i = 0; i < 10; i++) {
		item = malloc(sizeof(*item));
		ck_assert_ptr_nonnull(item);
		item->number = i;
		mrf_list_add_tail(&item->node, &head);
	}
	mrf_list_each_safe (pos, &head) {
		item = item_of(pos);
		ck_assert_int_eq(item->number, seen++);
		if (item->number % 2)
			continue;
		mrf_list_del(pos);
		free(item);
	}
	ck_assert_int_eq(seen, 10);
	expect("13579");
	mrf_list_each_safe (pos, &head)
		free(item_of(pos));
}
END_TEST

static TCase *tcase_list(void)
{
	TCase *tcase = tcase_create("list");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, list_keeps_the_order_it_was_filled_in);
	tcase_add_test(tcase, list_del_takes_out_any_node_even_twice);
	tcase_add_test(tcase, list_pop_empties_it_from_the_front);
	tcase_add_test(tcase, list_each_safe_allows_unlinking_and_freeing);
	return tcase;
}

UNIT_MAIN("list", tcase_list)

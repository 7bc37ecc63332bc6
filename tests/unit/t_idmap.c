/* SPDX-License-Identifier: BSD-2-Clause */
/* Includes the map itself, to see which slot a key lands in. */
#include "every.h"
#include "unit.h"
#include "base/idmap.c"
#include <stdbool.h>

/* The link has calloc come here, so that a test can make it fail. */
void *__wrap_calloc(size_t count, size_t size);
void *__real_calloc(size_t count, size_t size);

static bool no_memory;

void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

static struct mrf_idmap map;

static void setup(void)
{
	no_memory = false;
	mrf_idmap_init(&map);
}

static void teardown(void)
{
	mrf_idmap_fini(&map);
}

/* xorshift: the same steps everywhere. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *value_of(uintptr_t n)
{
	return (void *)(n * 8 + 8);
}

START_TEST(idmap_empty_finds_and_removes_nothing)
{
	ck_assert_ptr_null(mrf_idmap_find(&map, 0));
	ck_assert_ptr_null(mrf_idmap_find(&map, UINT64_MAX));
	ck_assert_ptr_null(mrf_idmap_remove(&map, 7));
	ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(idmap_takes_zero_and_the_greatest_number_as_keys)
{
	int a, b;

	ck_assert_int_eq(mrf_idmap_insert(&map, 0, &a), 0);
	ck_assert_ptr_null(mrf_idmap_find(&map, UINT64_MAX));
	ck_assert_int_eq(mrf_idmap_insert(&map, UINT64_MAX, &b), 0);
	ck_assert_ptr_eq(mrf_idmap_find(&map, 0), &a);
	ck_assert_ptr_eq(mrf_idmap_find(&map, UINT64_MAX), &b);
	ck_assert_ptr_null(mrf_idmap_find(&map, 1));
	ck_assert_ptr_eq(mrf_idmap_remove(&map, 0), &a);
	ck_assert_ptr_null(mrf_idmap_find(&map, 0));
	ck_assert_ptr_eq(mrf_idmap_find(&map, UINT64_MAX), &b);
	ck_assert_ptr_eq(mrf_idmap_remove(&map, UINT64_MAX), &b);
	ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(idmap_sweep_comes_by_each_value_once_before_any_comes_again)
{
	enum { N = 500 };
	static char what[N];
	size_t hand = 0;
	int i, round;

	ck_assert_ptr_null(mrf_idmap_sweep(&map, &hand));
	for (i = 0; i < N; i++)
		ck_assert_int_eq(mrf_idmap_insert(&map, (uint64_t)i * 4096, &what[i]), 0);
	for (round = 1; round <= 3; round++) {
		for (i = 0; i < N; i++)
			++*(char *)mrf_idmap_sweep(&map, &hand);
		for (i = 0; i < N; i++)
			ck_assert_int_eq(what[i], round);
	}
	/* Those that go while it comes by included. */
	for (i = 0; i < N; i++) {
		char *value = mrf_idmap_sweep(&map, &hand);

		ck_assert_ptr_eq(mrf_idmap_remove(&map, (uint64_t)(value - what) * 4096), value);
	}
	ck_assert_uint_eq(map.count, 0);
	ck_assert_ptr_null(mrf_idmap_sweep(&map, &hand));
}
END_TEST

START_TEST(idmap_refuses_a_key_that_is_taken)
{
	int a, b;

	ck_assert_int_eq(mrf_idmap_insert(&map, 5, &a), 0);
	ck_assert_int_eq(mrf_idmap_insert(&map, 5, &b), -FI_EALREADY);
	ck_assert_ptr_eq(mrf_idmap_find(&map, 5), &a);
	ck_assert_uint_eq(map.count, 1);
	ck_assert_ptr_eq(mrf_idmap_remove(&map, 5), &a);
	ck_assert_ptr_null(mrf_idmap_remove(&map, 5));
	ck_assert_int_eq(mrf_idmap_insert(&map, 5, &b), 0);
}
END_TEST

START_TEST(idmap_without_memory_fails_and_stays_as_it_was)
{
	uint64_t id, full;

	no_memory = true;
	ck_assert_int_eq(mrf_idmap_insert(&map, 1, value_of(1)), -FI_ENOMEM);
	ck_assert_uint_eq(map.count, 0);
	ck_assert_ptr_null(mrf_idmap_find(&map, 1));
	no_memory = false;
	ck_assert_int_eq(mrf_idmap_insert(&map, 0, value_of(0)), 0);
	/* Until the table would have to grow nothing is allocated. */
	no_memory = true;
	for (full = 1; mrf_idmap_insert(&map, full, value_of(full)) == 0; full++)
		ck_assert_uint_lt(full, 1000000);
	ck_assert_uint_gt(full, 2);
	ck_assert_int_eq(mrf_idmap_insert(&map, full, value_of(full)), -FI_ENOMEM);
	ck_assert_uint_eq(map.count, full);
	for (id = 0; id < full; id++)
		ck_assert_ptr_eq(mrf_idmap_find(&map, id), value_of(id));
	ck_assert_ptr_null(mrf_idmap_find(&map, full));
	no_memory = false;
	ck_assert_int_eq(mrf_idmap_insert(&map, full, value_of(full)), 0);
	ck_assert_ptr_eq(mrf_idmap_find(&map, full), value_of(full));
}
END_TEST

/*
 * 100,000 steps over a small set of keys, so that hits, misses, clusters and growth all
 * happen, compared with an array after every step and in full now and then.
 */
#define KEYS 512

static uint64_t model_key(size_t i)
{
	if (i == 0)
		return 0;
	if (i == 1)
		return UINT64_MAX;
	/* Dense numbers, pointers and high bits only. */
	return i % 3 == 0 ? i : i % 3 == 1 ? 0x7f0000000000 + i * 64 : (uint64_t)i << 52 | i;
}

static void model_compare(void *const *model, size_t count)
{
	size_t i;

	ck_assert_uint_eq(map.count, count);
	for (i = 0; i < KEYS; i++)
		ck_assert_ptr_eq(mrf_idmap_find(&map, model_key(i)), model[i]);
}

START_TEST(idmap_agrees_with_a_naive_model_for_100000_steps)
{
	static void *model[KEYS];
	uint64_t state = 88172645463325252ull;
	size_t step, i, count = 0, steps = 100000 / every();

	memset(model, 0, sizeof(model));
	for (step = 0; step < steps; step++) {
		uint64_t r = random_next(&state);

		i = (r >> 8) % KEYS;
		if (r & 1) {
			ck_assert_int_eq(mrf_idmap_insert(&map, model_key(i), value_of(step)),
					 model[i] ? -FI_EALREADY : 0);
			count += !model[i];
			model[i] = model[i] ? model[i] : value_of(step);
		} else {
			ck_assert_ptr_eq(mrf_idmap_remove(&map, model_key(i)), model[i]);
			count -= !!model[i];
			model[i] = NULL;
		}
		ck_assert_ptr_eq(mrf_idmap_find(&map, model_key(i)), model[i]);
		if (step % 1000 == 0)
			model_compare(model, count);
	}
	model_compare(model, count);
}
END_TEST

/*
 * Keys that share a home make one long run of slots. Taking them out from the front, the
 * back and the middle must lose none of the others.
 */
#define CLUSTER 24

static size_t cluster_make(uint64_t *ids)
{
	struct mrf_idmap single;
	uint64_t id;
	size_t n = 0;

	/* Alone in a map a key sits in its home: pick those whose home is the last slot.
	 */
	for (id = 0; n < CLUSTER; id++) {
		mrf_idmap_init(&single);
		ck_assert_int_eq(mrf_idmap_insert(&single, id, value_of(1)), 0);
		if (single.table.slots[single.table.mask].value)
			ids[n++] = id;
		mrf_idmap_fini(&single);
	}
	return n;
}

START_TEST(idmap_survives_deletions_inside_a_cluster_that_wraps)
{
	uint64_t ids[CLUSTER];
	size_t from, gone, i, n = cluster_make(ids);

	for (from = 0; from < n; from++) {
		for (i = 0; i < n; i++)
			ck_assert_int_eq(mrf_idmap_insert(&map, ids[i], value_of(i)), 0);
		for (gone = 0; gone < n; gone++) {
			size_t out = (from + gone * 7) % n; /* 7 and 24: every one once */

			ck_assert_ptr_eq(mrf_idmap_remove(&map, ids[out]), value_of(out));
			ck_assert_ptr_null(mrf_idmap_find(&map, ids[out]));
			ck_assert_uint_eq(map.count, n - gone - 1);
			for (i = gone + 1; i < n; i++) {
				out = (from + i * 7) % n;
				ck_assert_ptr_eq(mrf_idmap_find(&map, ids[out]), value_of(out));
			}
		}
	}
	ck_assert_uint_eq(map.table.mask, 63);
}
END_TEST

static void visit_sum(void *value, void *arg)
{
	*(uint64_t *)arg += (uintptr_t)value;
}

START_TEST(idmap_each_visits_every_value_once)
{
	uint64_t sum = 0, want = 0, id;

	mrf_idmap_each(&map, visit_sum, &sum);
	ck_assert_uint_eq(sum, 0);
	for (id = 0; id < 1000; id++) {
		ck_assert_int_eq(mrf_idmap_insert(&map, id * id, value_of(id)), 0);
		want += (uintptr_t)value_of(id);
	}
	mrf_idmap_each(&map, visit_sum, &sum);
	ck_assert_uint_eq(sum, want);
}
END_TEST

START_TEST(idmap_holds_100000_keys)
{
	uint64_t id, n = 100000 / every();

	for (id = 0; id < n; id++)
		ck_assert_int_eq(mrf_idmap_insert(&map, id << 12, value_of(id)), 0);
	for (id = 0; id < n; id++)
		ck_assert_ptr_eq(mrf_idmap_find(&map, id << 12), value_of(id));
	for (id = 0; id < n; id += 2)
		ck_assert_ptr_eq(mrf_idmap_remove(&map, id << 12), value_of(id));
	for (id = 0; id < n; id++)
		ck_assert_ptr_eq(mrf_idmap_find(&map, id << 12), id % 2 ? value_of(id) : NULL);
	ck_assert_uint_eq(map.count, n / 2);
}
END_TEST

/* A table of n slots is half full when it moves; no insert may move much of it. */
START_TEST(idmap_moves_a_few_values_with_each_insert)
{
	size_t n, most = 0;
	uintptr_t i;

	for (i = 0; i < 100000; i++) {
		n = map.left;
		ck_assert_int_eq(mrf_idmap_insert(&map, i * 3, value_of(i)), 0);
		if (map.left < n)
			most = n - map.left > most ? n - map.left : most;
		if (i % 997 == 0)
			ck_assert_ptr_eq(mrf_idmap_find(&map, i / 2 * 3), value_of(i / 2));
	}
	ck_assert_uint_ge(most, 1);
	ck_assert_uint_lt(most, 100);
	for (i = 0; i < 100000; i++)
		ck_assert_ptr_eq(mrf_idmap_remove(&map, i * 3), value_of(i));
	ck_assert_uint_eq(map.count, 0);
}
END_TEST

static TCase *tcase_idmap(void)
{
	TCase *tcase = tcase_create("idmap");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, idmap_empty_finds_and_removes_nothing);
	tcase_add_test(tcase, idmap_takes_zero_and_the_greatest_number_as_keys);
	tcase_add_test(tcase, idmap_sweep_comes_by_each_value_once_before_any_comes_again);
	tcase_add_test(tcase, idmap_refuses_a_key_that_is_taken);
	tcase_add_test(tcase, idmap_without_memory_fails_and_stays_as_it_was);
	tcase_add_test(tcase, idmap_agrees_with_a_naive_model_for_100000_steps);
	tcase_add_test(tcase, idmap_survives_deletions_inside_a_cluster_that_wraps);
	tcase_add_test(tcase, idmap_each_visits_every_value_once);
	tcase_add_test(tcase, idmap_holds_100000_keys);
	tcase_add_test(tcase, idmap_moves_a_few_values_with_each_insert);
	return tcase;
}

UNIT_MAIN("idmap", tcase_idmap)

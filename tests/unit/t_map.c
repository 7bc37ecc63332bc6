/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapped raw keys: what they are, how long they live, what they cost. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "fail_alloc.h"
#include "mr/map.h"
#include "unit.h"

#define SEED 0x0123456789abcdef
#define MANY 100000
#define BATCH 10000

static struct mrf_map *map;
static atomic_long freed;

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	if (p)
		atomic_fetch_add(&freed, 1);
	__real_free(p);
}

static void setup(void)
{
	map = mrf_map_new(SEED);
	ck_assert_ptr_nonnull(map);
}

static void teardown(void)
{
	mrf_map_free(map);
}

static struct mrf_rawkey sample(uint64_t key, uint32_t nseg)
{
	struct mrf_rawkey raw = { .space_id = 1,
				  .key = key,
				  .serial = key + 1,
				  .access = FI_REMOTE_READ,
				  .complete = nseg,
				  .nseg = nseg };
	uint32_t i;

	for (i = 0; i < nseg; i++) {
		raw.seg[i] = (struct mrf_wire_seg){ raw.len, 4096, i + 1, i + 7 };
		raw.len += 4096;
	}
	return raw;
}

static int add(struct mrf_map *to, const struct mrf_rawkey *raw, uint64_t *key)
{
	uint8_t bytes[MRF_RAWKEY_MAX];

	mrf_rawkey_encode(raw, bytes);
	return mrf_map_add(to, bytes, sizeof(bytes), key);
}

static uint64_t must_add(uint64_t key, uint32_t nseg)
{
	struct mrf_rawkey raw = sample(key, nseg);
	uint64_t mapped = 0;

	ck_assert_int_eq(add(map, &raw, &mapped), 0);
	ck_assert(mrf_map_live(map, mapped));
	return mapped;
}

static uint32_t count(void)
{
	struct mrf_rawkey raw;
	uint64_t key;

	return mrf_map_count(map, &key, &raw);
}

static uint32_t index_of(uint64_t key)
{
	return (uint32_t)key & MRF_MAP_INDEX_MASK;
}

static void gone(uint64_t key)
{
	struct mrf_rawkey out;

	ck_assert(!mrf_map_live(map, key));
	ck_assert(!mrf_map_get(map, key, &out));
	ck_assert(!mrf_map_remove(map, key));
}

START_TEST(key_gives_back_what_was_mapped)
{
	struct mrf_rawkey out;
	uint64_t key[17];
	uint32_t n;

	for (n = 0; n <= 16; n++)
		key[n] = must_add(100 + n, n);
	for (n = 0; n <= 16; n++) {
		struct mrf_rawkey want = sample(100 + n, n);

		memset(&out, 0xff, sizeof(out));
		ck_assert(mrf_map_get(map, key[n], &out));
		ck_assert_uint_eq(out.key, want.key);
		ck_assert_uint_eq(out.serial, want.serial);
		ck_assert_uint_eq(out.space_id, want.space_id);
		ck_assert_uint_eq(out.access, want.access);
		ck_assert_uint_eq(out.mr_mode, want.mr_mode);
		ck_assert_uint_eq(out.base, want.base);
		ck_assert_uint_eq(out.len, want.len);
		ck_assert_int_eq(out.complete, want.complete);
		ck_assert_uint_eq(out.nseg, n);
		ck_assert_mem_eq(out.seg, want.seg, n * sizeof(out.seg[0]));
	}
}
END_TEST

START_TEST(key_looks_like_no_provider_key_and_is_never_notavail)
{
	static const uint64_t seed[] = { 0, UINT64_MAX, SEED, 1ull << 63 };
	struct mrf_rawkey raw = sample(1, 1);
	struct mrf_map *other = mrf_map_new(seed[_i]);
	uint64_t key;

	ck_assert_int_eq(add(other, &raw, &key), 0);
	ck_assert_uint_eq(key >> 62, 3);
	ck_assert_uint_lt(other->tag >> 32, UINT32_MAX);
	ck_assert(mrf_map_maybe(other, key));
	ck_assert(!mrf_map_maybe(other, FI_KEY_NOTAVAIL));
	mrf_map_free(other);
}
END_TEST

START_TEST(unmapped_key_is_gone_and_remembered)
{
	uint64_t key = must_add(1, 2), other = must_add(2, 2);

	ck_assert(!mrf_map_was(map, key));
	ck_assert(mrf_map_remove(map, key));
	gone(key);
	ck_assert(mrf_map_was(map, key));
	ck_assert(mrf_map_live(map, other));
	ck_assert(!mrf_map_was(map, other));
}
END_TEST

START_TEST(key_never_comes_back)
{
	uint64_t first = must_add(1, 0), key = first;
	unsigned i;

	for (i = 1; i <= 3 * (MRF_MAP_GEN_MAX + 1); i++) {
		ck_assert_uint_eq(index_of(key), (i - 1) / (MRF_MAP_GEN_MAX + 1));
		ck_assert(mrf_map_remove(map, key));
		key = must_add(i, 0);
		ck_assert_uint_ne(key, first);
		gone(first);
		ck_assert(mrf_map_was(map, first));
	}
	/* All generations of three slots: they are retired. */
	ck_assert_uint_eq(index_of(key), 3);
	ck_assert_uint_eq(count(), 1);
}
END_TEST

START_TEST(key_that_was_never_given_is_not_known)
{
	static const uint64_t low[] = {
		1,	   63, 64, 65, 4096, MRF_MAP_SLOTS - 1, MRF_MAP_SLOTS, MRF_MAP_INDEX_MASK,
		UINT32_MAX
	};
	uint64_t key = must_add(1, 1), high = key & ~(uint64_t)UINT32_MAX;
	unsigned i;

	for (i = 0; i < sizeof(low) / sizeof(low[0]); i++) {
		ck_assert(mrf_map_maybe(map, high | low[i]));
		gone(high | low[i]);
		ck_assert(!mrf_map_was(map, high | low[i]));
	}
	/* The right slot, a generation that is still to come. */
	gone(key + (1u << MRF_MAP_INDEX_BITS));
	ck_assert(!mrf_map_was(map, key + (1u << MRF_MAP_INDEX_BITS)));
	ck_assert(!mrf_map_maybe(map, 7));
	gone(7);
	gone(key ^ 1ull << 40);
	ck_assert(!mrf_map_maybe(map, key ^ 1ull << 40));
	gone(FI_KEY_NOTAVAIL);
}
END_TEST

/* Of a slot that stands for nothing, and of parts of keys. */
START_TEST(what_is_made_up_from_keys_is_no_key)
{
	uint64_t key = must_add(1, 1), other = must_add(2, 1);

	ck_assert(mrf_map_remove(map, key));
	gone(key & ~(uint64_t)UINT32_MAX);
	gone(map->tag | mrf_map_find(map, key)->key);
	gone((uint32_t)key);
	gone((uint32_t)other);
	gone(index_of(other));
	gone(0);
	ck_assert(mrf_map_live(map, other));
	ck_assert_uint_eq(count(), 1);
}
END_TEST

START_TEST(foreign_key_is_not_known)
{
	struct mrf_map *other = mrf_map_new(~(uint64_t)SEED);
	uint64_t key = must_add(1, 1);

	ck_assert(!mrf_map_maybe(other, key));
	ck_assert(!mrf_map_live(other, key));
	ck_assert(!mrf_map_was(other, key));
	ck_assert(!mrf_map_remove(other, key));
	ck_assert(mrf_map_live(map, key));
	mrf_map_free(other);
}
END_TEST

START_TEST(count_names_one_that_is_mapped)
{
	struct mrf_rawkey raw;
	uint64_t key[3], one = 0;
	unsigned i;

	ck_assert_uint_eq(mrf_map_count(map, &one, &raw), 0);
	for (i = 0; i < 3; i++)
		key[i] = must_add(i, 1);
	ck_assert(mrf_map_remove(map, key[0]));
	key[0] = must_add(10, 1);
	ck_assert(mrf_map_remove(map, key[2]));
	ck_assert_uint_eq(mrf_map_count(map, &one, &raw), 2);
	ck_assert_uint_eq(one, key[0]);
	ck_assert_uint_eq(raw.key, 10);
	ck_assert(mrf_map_remove(map, key[0]));
	ck_assert_uint_eq(mrf_map_count(map, &one, &raw), 1);
	ck_assert_uint_eq(one, key[1]);
}
END_TEST

/* As one is that another thread writes to while it is checked and mapped. */
START_TEST(raw_key_that_is_damaged_after_all_is_not_believed)
{
	struct mrf_rawkey raw = sample(1, (uint32_t)_i), out;
	uint8_t bytes[MRF_RAWKEY_MAX] = { 0 };
	struct mrf_map_slot *slot;
	uint8_t *kept;
	uint64_t key;

	mrf_rawkey_encode(&raw, bytes);
	bytes[24] ^= 1;
	ck_assert_int_eq(mrf_map_add(map, bytes, sizeof(bytes), &key), 0);
	ck_assert(!mrf_map_get(map, key, &out));
	ck_assert(mrf_map_remove(map, key));
	/* Its length, too: not a byte beyond what is there is looked at. */
	bytes[24] ^= 1;
	ck_assert_int_eq(mrf_map_add(map, bytes, sizeof(bytes), &key), 0);
	slot = mrf_map_find(map, key);
	kept = slot->longer ? slot->longer : slot->bytes;
	kept[6] = kept[7] = 0xff;
	ck_assert(!mrf_map_get(map, key, &out));
	ck_assert_uint_eq(mrf_map_count(map, &key, &raw), 1);
	ck_assert_uint_eq(raw.len, 0);
	ck_assert(mrf_map_remove(map, key));
	bytes[6] = bytes[7] = 0xff;
	ck_assert_int_eq(mrf_map_add(map, bytes, sizeof(bytes), &key), 0);
	ck_assert(!mrf_map_get(map, key, &out));
	ck_assert(mrf_map_remove(map, key));
}
END_TEST

START_TEST(failed_allocation_changes_nothing)
{
	struct mrf_rawkey raw = sample(1, 3);
	uint64_t key = 42;

	ck_assert_ptr_null(failing_after(0, mrf_map_new(SEED)));
	ck_assert_int_eq(failing_after(0, add(map, &raw, &key)), -FI_ENOMEM);
	ck_assert_int_eq(failing_after(1, add(map, &raw, &key)), -FI_ENOMEM);
	ck_assert_uint_eq(key, 42);
	ck_assert_uint_eq(count(), 0);
	ck_assert_uint_eq(map->used, 0);
	must_add(1, 3);
}
END_TEST

START_TEST(map_says_when_it_is_full)
{
	struct mrf_rawkey raw = sample(1, 1);
	uint64_t key = 42;
	uint32_t used = map->used;

	map->used = MRF_MAP_SLOTS;
	ck_assert_int_eq(add(map, &raw, &key), -FI_ENOSPC);
	map->used = used;
	ck_assert_uint_eq(key, 42);
	ck_assert_uint_eq(count(), 0);
}
END_TEST

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* As many as the first BATCH cost, within reason, whatever there is already. */
static void flat(int64_t first, int64_t last)
{
	ck_assert_msg(last < 20 * first + 20000000, "first %lld ns, last %lld ns", (long long)first,
		      (long long)last);
}

static void map_many(uint64_t *key)
{
	int64_t start = cpu_ns(), first = 0, before = 0;
	unsigned i;

	for (i = 0; i < MANY; i++) {
		if (i == BATCH)
			first = cpu_ns() - start;
		if (i == MANY - BATCH)
			before = cpu_ns();
		/* Half of them fit into their slots. */
		key[i] = must_add(i, 1 + i % 2);
	}
	flat(first, cpu_ns() - before);
}

static void unmap_many(const uint64_t *key)
{
	int64_t start = cpu_ns(), first = 0, before = 0;
	unsigned removed = 0, i;

	for (i = 0; i < MANY; i++) {
		if (i == BATCH)
			first = cpu_ns() - start;
		if (i == MANY - BATCH)
			before = cpu_ns();
		removed += mrf_map_remove(map, key[i]);
	}
	flat(first, cpu_ns() - before);
	ck_assert_uint_eq(removed, MANY);
}

START_TEST(hundred_thousand_keys_cost_the_same_each_and_leave_nothing)
{
	uint64_t *key = malloc(MANY * sizeof(*key));
	struct mrf_rawkey out;
	uint32_t used, i;
	long frees;

	ck_assert_ptr_nonnull(key);
	map_many(key);
	used = map->used;
	ck_assert_uint_eq(used, MANY);
	for (i = 0; i < MANY; i += 999) {
		ck_assert(mrf_map_get(map, key[i], &out));
		ck_assert_uint_eq(out.key, i);
	}
	frees = atomic_load(&freed);
	unmap_many(key);
	ck_assert_int_ge(atomic_load(&freed) - frees, MANY / 2);
	ck_assert_uint_eq(count(), 0);
	map_many(key);
	ck_assert_uint_eq(map->used, used);
	unmap_many(key);
	free(key);
}
END_TEST

/* --- threads ---------------------------------------------------------------------- */

#define THREADS 4
#define TURNS 3000

static _Atomic uint64_t published;

static void *mapper(void *arg)
{
	uint64_t id = (uint64_t)(uintptr_t)arg;
	struct mrf_rawkey out, raw;
	uint64_t key;
	unsigned i;

	for (i = 0; i < TURNS; i++) {
		raw = sample(id << 32 | i, i % 17);
		if (add(map, &raw, &key))
			return (void *)"add";
		atomic_store(&published, key);
		if (!mrf_map_live(map, key) || !mrf_map_get(map, key, &out) || out.key != raw.key)
			return (void *)"get";
		if (!mrf_map_remove(map, key) || mrf_map_live(map, key) || !mrf_map_was(map, key))
			return (void *)"remove";
	}
	return NULL;
}

/* Looks at keys that others map and unmap. */
static void *watcher(void *arg)
{
	struct mrf_rawkey out;
	unsigned i;

	(void)arg;
	for (i = 0; i < TURNS; i++) {
		uint64_t key = atomic_load(&published);

		mrf_map_live(map, key);
		mrf_map_was(map, key);
		if (mrf_map_get(map, key, &out) && out.nseg != (uint32_t)out.key % 17)
			return (void *)"torn";
	}
	return NULL;
}

START_TEST(threads_map_and_unmap_side_by_side)
{
	pthread_t thread[THREADS + 1];
	uintptr_t i;
	void *failed;

	for (i = 0; i <= THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, i < THREADS ? mapper : watcher, (void *)i),
			0);
	for (i = 0; i <= THREADS; i++) {
		pthread_join(thread[i], &failed);
		ck_assert_msg(!failed, "%s", (const char *)failed);
	}
	ck_assert_uint_eq(count(), 0);
}
END_TEST

static atomic_int done;

static void *late(void *arg)
{
	struct mrf_rawkey raw = sample(7, 1), out;
	uint64_t key;

	(void)arg;
	if (add(map, &raw, &key))
		return (void *)"add";
	atomic_store(&done, 1);
	if (!mrf_map_get(map, key, &out) || out.key != 7)
		return (void *)"get";
	return mrf_map_remove(map, key) ? NULL : (void *)"remove";
}

START_TEST(who_finds_the_map_locked_waits)
{
	uint64_t key = must_add(1, 1);
	pthread_t thread;
	void *failed;

	ck_assert(mrf_map_remove(map, key));
	mrf_lock_take(&map->lock);
	/* An operation does not wait. */
	ck_assert(!mrf_map_live(map, key));
	ck_assert_int_eq(pthread_create(&thread, NULL, late, NULL), 0);
	usleep(20000);
	ck_assert_int_eq(atomic_load(&done), 0);
	mrf_lock_release(&map->lock);
	pthread_join(thread, &failed);
	ck_assert_msg(!failed, "%s", (const char *)failed);
	/* It took the slot that was spare. */
	ck_assert_uint_eq(index_of(must_add(2, 1)), index_of(key));
}
END_TEST

static TCase *tcase_keys(void)
{
	TCase *tc = tcase_create("keys");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, key_gives_back_what_was_mapped);
	tcase_add_loop_test(tc, key_looks_like_no_provider_key_and_is_never_notavail, 0, 4);
	tcase_add_test(tc, unmapped_key_is_gone_and_remembered);
	tcase_add_test(tc, key_never_comes_back);
	tcase_add_test(tc, key_that_was_never_given_is_not_known);
	tcase_add_test(tc, what_is_made_up_from_keys_is_no_key);
	tcase_add_test(tc, foreign_key_is_not_known);
	tcase_add_test(tc, count_names_one_that_is_mapped);
	tcase_add_loop_test(tc, raw_key_that_is_damaged_after_all_is_not_believed, 0, 3);
	tcase_add_test(tc, failed_allocation_changes_nothing);
	tcase_add_test(tc, map_says_when_it_is_full);
	return tc;
}

static TCase *tcase_many(void)
{
	TCase *tc = tcase_create("many");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, hundred_thousand_keys_cost_the_same_each_and_leave_nothing);
	tcase_add_test(tc, who_finds_the_map_locked_waits);
	tcase_add_test(tc, threads_map_and_unmap_side_by_side);
	tcase_set_timeout(tc, 120);
	return tc;
}

UNIT_MAIN("map", tcase_keys, tcase_many)

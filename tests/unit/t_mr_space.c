/* SPDX-License-Identifier: BSD-2-Clause */
/* The key space as a whole: what the agent sees in it, many regions, many threads. */
#include <pthread.h>
#include <time.h>
#include "mr_fixture.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

START_TEST(lookup_shows_what_a_peer_needs_with_virtual_addresses)
{
	struct mrf_mr_view view;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem + 5, 100, FI_SEND | FI_REMOTE_READ, 3);
	env_look(3, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	ck_assert_uint_eq(view.access, FI_REMOTE_READ);
	ck_assert_uint_eq(view.base, (uintptr_t)mem + 5);
	ck_assert_uint_eq(view.len, 100);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_uint_eq(view.seg[0].addr, (uintptr_t)mem + 5);
	ck_assert_uint_eq(view.seg[0].len, 100);
	ck_assert_uint_eq(view.seg[0].iova, (uintptr_t)mem + 5);
	ck_assert_uint_eq(view.seg[0].rkey, fake_verbs.last.mr.rkey);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(lookup_shows_the_in_page_offset_of_a_zero_based_region)
{
	struct mrf_mr_view view;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem + 2 * PAGE + 0x123, 100, RW, 3);
	env_look(3, &view);
	ck_assert_uint_eq(view.seg[0].iova, 0x123);
	ck_assert_uint_eq(view.base, (uintptr_t)mem + 2 * PAGE + 0x123);
	ck_assert_uint_eq(view.access, RW);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(lookup_shows_every_segment_in_order)
{
	struct iovec iov[MRF_MR_IOV_LIMIT];
	struct mrf_mr_view view;
	const struct fake_mr *kernel;
	struct fid_mr *mr;
	unsigned i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < MRF_MR_IOV_LIMIT; i++) {
		iov[i].iov_base = mem + (MRF_MR_IOV_LIMIT - i) * 2 * PAGE + i;
		iov[i].iov_len = i + 1;
	}
	mr = env_must_regv(iov, MRF_MR_IOV_LIMIT, RW, 3);
	env_look(3, &view);
	ck_assert_uint_eq(view.nseg, MRF_MR_IOV_LIMIT);
	ck_assert_uint_eq(view.len, MRF_MR_IOV_LIMIT * (MRF_MR_IOV_LIMIT + 1) / 2);
	for (i = 0; i < MRF_MR_IOV_LIMIT; i++) {
		kernel = fake_verbs_find(view.seg[i].rkey);
		ck_assert_ptr_nonnull(kernel);
		ck_assert_ptr_eq(kernel->mr.addr, iov[i].iov_base);
		ck_assert_uint_eq(kernel->mr.length, i + 1);
		ck_assert_uint_eq(kernel->iova, i);
		ck_assert_uint_eq(view.seg[i].iova, i);
		ck_assert_uint_eq(view.seg[i].addr, i * (i + 1) / 2);
	}
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(space_init_without_memory_leaves_nothing)
{
	struct fid fid = { .fclass = FI_CLASS_DOMAIN };
	struct mrf_obj obj;
	struct mrf_mr_space space = { .obj = &obj };
	unsigned nth, needed;
	int ret;

	mrf_obj_init(&obj, &fid, NULL);
	fail_alloc(0);
	library_enter();
	ret = mrf_mr_space_init(&space);
	library_leave();
	ck_assert_int_eq(ret, 0);
	needed = allocs();
	mrf_mr_space_fini(&space);
	ck_assert_uint_ge(needed, 2);
	for (nth = 1; nth <= needed; nth++) {
		fail_alloc(nth);
		library_enter();
		ret = mrf_mr_space_init(&space);
		library_leave();
		ck_assert_int_eq(ret, -FI_ENOMEM);
	}
	fail_alloc(0);
	mrf_obj_fini(&obj);
}
END_TEST

#define MANY 100000

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A round of registering and closing, with whatever else is alive. */
static double round_trip(void)
{
	double start = seconds();
	int i;

	for (i = 0; i < 5000; i++)
		env_must_close(env_must_reg(mem, PAGE, RW, UINT64_MAX - 1));
	return seconds() - start;
}

START_TEST(space_holds_100000_regions_and_stays_fast)
{
	static struct fid_mr *mr[MANY];
	struct mrf_mr_view view;
	double alone, crowded;
	int i;

	env_open(FI_MR_ALLOCATED);
	round_trip();
	alone = round_trip();
	for (i = 0; i < MANY; i++)
		mr[i] = env_must_reg(mem + i % PAGE, PAGE, RW, (uint64_t)i << 20);
	ck_assert_uint_eq(fake_verbs.live_mrs, MANY);
	ck_assert_uint_eq(env.space.keys.count, MANY);
	crowded = round_trip();
	/* Flat, that is: nothing walks all regions. Room for a busy machine. */
	ck_assert_double_lt(crowded, alone * 20 + 0.05);
	for (i = 0; i < MANY; i += 997) {
		env_look((uint64_t)i << 20, &view);
		ck_assert_int_eq(view.status, MRF_MR_OK);
		ck_assert_uint_eq(view.base, (uintptr_t)mem + (unsigned)i % PAGE);
	}
	for (i = 0; i < MANY; i++)
		env_must_close(mr[i]);
	env_close();
}
END_TEST

#define THREADS 4
#define ROUNDS 500
#define HELD 16

/* Registers and closes under keys of its own; a failure ends it early. */
static void *worker(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;
	struct fid_mr *mr[HELD];
	struct mrf_desc out;
	int i, round;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < HELD; i++) {
			if (env_reg(mem + i, PAGE, RW | FI_SEND, base + (unsigned)i, &mr[i]))
				return NULL;
		}
		for (i = 0; i < HELD; i++) {
			if (!mrf_desc_get(&env.space, fi_mr_desc(mr[i]), &out) ||
			    out.seg.addr != (uintptr_t)mem + (unsigned)i)
				return NULL;
			if (fi_close(&mr[i]->fid))
				return NULL;
		}
	}
	return arg;
}

static void *looker(void *arg)
{
	struct mrf_mr_view view;
	uint64_t key;
	int i;

	for (i = 0; i < ROUNDS * HELD; i++) {
		key = (uint64_t)(1 + i % THREADS) << 32 | (unsigned)(i % HELD);
		env_look(key, &view);
		if (view.status == MRF_MR_OK &&
		    (view.base != (uintptr_t)mem + (unsigned)(i % HELD) || view.nseg != 1))
			return NULL;
	}
	return arg;
}

START_TEST(space_serves_threads_that_register_close_and_look_up)
{
	pthread_t thread[THREADS + 1];
	void *ret;
	uintptr_t i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, worker, (void *)(i + 1)), 0);
	ck_assert_int_eq(pthread_create(&thread[THREADS], NULL, looker, (void *)1), 0);
	for (i = 0; i <= THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &ret), 0);
		ck_assert_ptr_nonnull(ret);
	}
	env_close();
}
END_TEST

/* All want one key: at any moment at most one has it. */
static void *contender(void *arg)
{
	uintptr_t won = 1;
	struct fid_mr *mr;
	int i, ret;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		ret = env_reg(mem, PAGE, RW, 42, &mr);
		if (ret == -FI_ENOKEY)
			continue;
		if (ret || fi_close(&mr->fid))
			return NULL;
		won++;
	}
	return (void *)won;
}

START_TEST(space_gives_a_contended_key_to_one_at_a_time)
{
	static struct unit_capture cap;
	pthread_t thread[THREADS];
	uintptr_t won = 0;
	void *ret;
	int i;

	env_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, contender, NULL), 0);
	for (i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &ret), 0);
		ck_assert_ptr_nonnull(ret);
		won += (uintptr_t)ret - 1;
	}
	unit_captured(&cap);
	ck_assert_uint_gt(won, 0);
	ck_assert_uint_eq(env.space.nclosed, won);
	env_close();
}
END_TEST

static TCase *lookups(void)
{
	TCase *tc = tcase_create("lookups");

	tcase_add_test(tc, lookup_shows_what_a_peer_needs_with_virtual_addresses);
	tcase_add_test(tc, lookup_shows_the_in_page_offset_of_a_zero_based_region);
	tcase_add_test(tc, lookup_shows_every_segment_in_order);
	tcase_add_test(tc, space_init_without_memory_leaves_nothing);
	return tc;
}

static TCase *crowds(void)
{
	TCase *tc = tcase_create("crowds");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, space_holds_100000_regions_and_stays_fast);
	tcase_add_test(tc, space_serves_threads_that_register_close_and_look_up);
	tcase_add_test(tc, space_gives_a_contended_key_to_one_at_a_time);
	return tc;
}

UNIT_MAIN("mr_space", lookups, crowds)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Local descriptors: what a live one yields, and that nothing else passes for one. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/clock.h"
#include "mr/desc.h"
#include "mr_fixture.h"

static void set_all(struct mrf_mr *mr, uint32_t value)
{
	struct mrf_mr_seg seg = { value, value, value, value, value };

	mrf_mr_set(mr, value, 1, &seg, NULL);
}

static struct mrf_mr *take_region(struct mrf_mr_space *space)
{
	struct mrf_mr *mr = mrf_mr_pool_get_locked(space);

	ck_assert_ptr_nonnull(mr);
	mr->space = space;
	return mr;
}

static bool known(const void *desc)
{
	struct mrf_desc out;

	return mrf_desc_get(&env.space, desc, &out);
}

START_TEST(desc_of_a_region_yields_its_rights_and_segment)
{
	struct mrf_desc out;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem + 100, 200, FI_SEND | FI_REMOTE_READ, 7);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert_uint_eq(out.access, FI_SEND | FI_REMOTE_READ);
	ck_assert_uint_eq(out.nseg, 1);
	ck_assert_ptr_null(out.segs);
	ck_assert_uint_eq(out.seg.addr, (uintptr_t)mem + 100);
	ck_assert_uint_eq(out.seg.len, 200);
	ck_assert_uint_eq(out.seg.iova, (uintptr_t)mem + 100);
	ck_assert_uint_eq(out.seg.lkey, fake_verbs.last.mr.lkey);
	ck_assert_uint_eq(out.seg.rkey, fake_verbs.last.mr.rkey);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(desc_of_a_zero_based_region_has_the_in_page_offset_as_iova)
{
	struct mrf_desc out;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem + PAGE + 0x123, 200, FI_SEND, 0);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert_uint_eq(out.seg.addr, (uintptr_t)mem + PAGE + 0x123);
	ck_assert_uint_eq(out.seg.iova, 0x123);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(desc_of_several_segments_shows_all_of_them)
{
	struct iovec iov[3] = { { mem, 10 }, { NULL, 0 }, { NULL, 30 } };
	struct mrf_desc out;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	iov[0].iov_base = mem;
	iov[2].iov_base = mem + PAGE;
	mr = env_must_regv(iov, 3, FI_RECV, 0);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert_uint_eq(out.nseg, 2);
	ck_assert_ptr_nonnull(out.segs);
	ck_assert_uint_eq(out.segs[0].addr, (uintptr_t)mem);
	ck_assert_uint_eq(out.segs[1].addr, (uintptr_t)mem + PAGE);
	ck_assert_uint_eq(out.segs[1].len, 30);
	ck_assert_uint_ne(out.segs[0].lkey, out.segs[1].lkey);
	ck_assert_mem_eq(&out.seg, &out.segs[0], sizeof(out.seg));
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(desc_is_stale_after_close_even_when_the_slot_is_used_again)
{
	struct fid_mr *mr;
	void *stale[8];
	int i, j;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < 8; i++) {
		mr = env_must_reg(mem, PAGE, FI_SEND, 0);
		stale[i] = fi_mr_desc(mr);
		ck_assert(known(stale[i]));
		for (j = 0; j < i; j++) {
			ck_assert_ptr_ne(stale[i], stale[j]);
			ck_assert(!known(stale[j]));
		}
		env_must_close(mr);
		ck_assert(!known(stale[i]));
	}
	ck_assert_uint_eq(env.space.pool->used, 1);
	env_close();
}
END_TEST

START_TEST(desc_garbage_is_recognised)
{
	struct fid_mr *mr;
	uintptr_t value;
	int bit;

	env_open(FI_MR_ALLOCATED);
	ck_assert(!known(NULL));
	mr = env_must_reg(mem, PAGE, FI_SEND, 0);
	value = (uintptr_t)fi_mr_desc(mr);
	ck_assert(!known(NULL));
	ck_assert(!known(mr));
	ck_assert(!known(mem));
	ck_assert(!known((void *)1));
	ck_assert(!known((void *)UINTPTR_MAX));
	/* One wrong bit anywhere makes it another slot, generation or table. */
	for (bit = 0; bit < 64; bit++)
		ck_assert(!known((void *)(value ^ (uintptr_t)1 << bit)));
	ck_assert(known((void *)value));
	env_must_close(mr);
	env_close();
}
END_TEST

/* What a slot holds while its region is not there is nobody's descriptor either. */
START_TEST(desc_no_word_of_a_slot_without_a_region_passes)
{
	struct mrf_mr *slot;
	struct fid_mr *mr;
	uintptr_t i;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, PAGE, FI_SEND, 0);
	slot = atomic_load(&env.space.pool->chunk[0]);
	ck_assert(known((void *)(uintptr_t)atomic_load(&slot[0].live)));
	env_must_close(mr);
	for (i = 0; i < MRF_MR_CHUNK; i++) {
		uint64_t word = atomic_load(&slot[i].live);

		ck_assert(!known((void *)i));
		ck_assert(!known((void *)(uintptr_t)word));
		ck_assert(!known((void *)(uintptr_t)(word ^ MRF_DESC_INDEX_MASK)));
	}
	env_close();
}
END_TEST

/* The short forms: one region, asked about this and that. */
START_TEST(desc_short_forms_look_at_right_and_bounds)
{
	struct fid_mr *mr, *two;
	struct iovec iov[2];
	struct mrf_desc out;
	uintptr_t at;
	uint64_t iova;
	uint32_t lkey;
	void *d;

	env_open(FI_MR_ALLOCATED);
	at = (uintptr_t)mem + 100;
	iov[0] = (struct iovec){ mem, 64 };
	iov[1] = (struct iovec){ mem + PAGE, 64 };
	mr = env_must_reg(mem + 100, 200, FI_WRITE, 0);
	two = env_must_regv(iov, 2, FI_WRITE, 0);
	d = fi_mr_desc(mr);
#define COVERS(desc, right, addr, len) mrf_desc_covers(&env.space, desc, right, addr, len)
#define LOCAL(desc, right, addr, len) \
	mrf_desc_local(&env.space, desc, right, addr, len, &iova, &lkey)
#define BOTH(yes, ...)                                 \
	do {                                           \
		ck_assert(COVERS(__VA_ARGS__) == yes); \
		ck_assert(LOCAL(__VA_ARGS__) == yes);  \
	} while (0)
	BOTH(true, d, FI_WRITE, at, 200);
	BOTH(true, d, FI_WRITE, at + 192, 8);
	ck_assert(mrf_desc_get(&env.space, d, &out));
	ck_assert_uint_eq(iova, out.seg.iova + 192);
	ck_assert_uint_eq(lkey, out.seg.lkey);
	BOTH(false, d, FI_READ, at, 8);
	BOTH(false, d, FI_WRITE, at - 1, 8);
	BOTH(false, d, FI_WRITE, at + 193, 8);
	BOTH(false, d, FI_WRITE, at, 201);
	BOTH(false, d, FI_WRITE, at, UINT64_MAX);
	BOTH(false, d, FI_WRITE, UINT64_MAX - 7, 8);
	BOTH(false, NULL, FI_WRITE, at, 8);
	/* Of several segments somebody else looks for the right one. */
	BOTH(false, fi_mr_desc(two), FI_WRITE, (uintptr_t)mem, 8);
	ck_assert(mrf_desc_live(&env.space, d));
	env_must_close(mr);
	ck_assert(!mrf_desc_live(&env.space, d));
	BOTH(false, d, FI_WRITE, at, 8);
	ck_assert(mrf_desc_live(&env.space, fi_mr_desc(two)));
	env_must_close(two);
	env_close();
}
END_TEST

START_TEST(desc_of_another_domain_is_foreign)
{
	struct mrf_mr_space other = { 0 };
	struct mrf_desc out;
	struct mrf_mr *theirs;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	other.obj = &env.obj;
	ck_assert_int_eq(mrf_mr_space_init(&other), 0);
	mr = env_must_reg(mem, PAGE, FI_SEND, 0);
	/* Same slot, same generation. */
	mrf_lock_take(&other.lock);
	theirs = take_region(&other);
	set_all(theirs, 1);
	mrf_mr_set_live_locked(theirs);
	mrf_lock_release(&other.lock);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert(!mrf_desc_get(&other, fi_mr_desc(mr), &out));
	ck_assert(mrf_desc_get(&other, theirs->fid.mem_desc, &out));
	ck_assert(!mrf_desc_get(&env.space, theirs->fid.mem_desc, &out));
	env_must_close(mr);
	mrf_mr_space_fini(&other);
	env_close();
}
END_TEST

/* After the last generation a slot would repeat itself: it must never come back. */
START_TEST(desc_slot_that_used_up_its_generations_is_retired)
{
	struct mrf_mr *slot;
	struct fid_mr *mr, *next;
	void *last;

	env_open(FI_MR_ALLOCATED);
	env_must_close(env_must_reg(mem, PAGE, FI_SEND, 0));
	slot = atomic_load(&env.space.pool->chunk[0]);
	atomic_store(&slot->live, mrf_mr_dead_word(env.space.pool, MRF_DESC_GEN_MAX, 0));
	mr = env_must_reg(mem, PAGE, FI_SEND, 0);
	last = fi_mr_desc(mr);
	ck_assert_uint_eq((uintptr_t)last & MRF_DESC_INDEX_MASK, 0);
	ck_assert(known(last));
	env_must_close(mr);
	ck_assert(!known(last));
	next = env_must_reg(mem, PAGE, FI_SEND, 0);
	ck_assert_uint_eq((uintptr_t)fi_mr_desc(next) & MRF_DESC_INDEX_MASK, 1);
	ck_assert(!known(last));
	env_must_close(next);
	env_close();
}
END_TEST

#define MANY (2 * MRF_MR_CHUNK + 1)

START_TEST(desc_table_grows_without_moving_what_is_there)
{
	static struct fid_mr *mr[MANY];
	struct mrf_desc out;
	int i;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	for (i = 0; i < MANY; i++)
		mr[i] = env_must_reg(mem + i, 1, FI_SEND, 0);
	for (i = 0; i < MANY; i++) {
		ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr[i]), &out));
		ck_assert_uint_eq(out.seg.addr, (uintptr_t)mem + (unsigned)i);
	}
	for (i = 0; i < MANY; i++)
		env_must_close(mr[i]);
	for (i = 0; i < MANY; i++)
		mr[i] = env_must_reg(mem + i, 1, FI_SEND, 0);
	ck_assert_uint_eq(env.space.pool->used, MANY);
	for (i = 0; i < MANY; i++)
		env_must_close(mr[i]);
	env_close();
}
END_TEST

#define TURNS 2000000
#define TURNS_MS 20000 /* at most, on a machine that is busy */

static atomic_bool stop;
static _Atomic(void *) shared;

/* Copies must be whole: every word tells the others, whoever owns the slot just now. */
static void *reader(void *arg)
{
	unsigned long hits = 0;
	struct mrf_desc out;

	(void)arg;
	while (!atomic_load(&stop)) {
		if (!mrf_desc_get(&env.space, atomic_load(&shared), &out))
			continue;
		hits++;
		if (out.seg.len != out.access || out.seg.addr != out.access ||
		    out.seg.iova != out.access || out.seg.lkey != out.access ||
		    out.seg.rkey != out.access || out.nseg != 1)
			return NULL;
	}
	return (void *)(hits + 1);
}

/* One slot changes hands as fast as can be while others copy it. */
START_TEST(desc_get_never_copies_half_of_a_change)
{
	pthread_t thread[2];
	int64_t end = mrf_now_ms() + TURNS_MS;
	struct mrf_mr *mr;
	uint32_t i, spin;
	void *whole;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	atomic_store(&stop, false);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, reader, NULL), 0);
	/* The readers do without. */
	mrf_lock_take(&env.space.lock);
	mr = take_region(&env.space);
	for (i = 1; i <= TURNS && (i % 1024 || mrf_now_ms() < end); i++) {
		set_all(mr, i);
		mrf_mr_set_live_locked(mr);
		atomic_store(&shared, mr->fid.mem_desc);
		/* Alive for various times: readers are caught at every point. */
		for (spin = i & 63; spin; spin--)
			(void)atomic_load(&stop);
		mrf_mr_set_dead_locked(mr);
	}
	mrf_lock_release(&env.space.lock);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &whole), 0);
		ck_assert_ptr_nonnull(whole);
	}
	env_close();
}
END_TEST

static TCase *desc(void)
{
	TCase *tc = tcase_create("desc");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, desc_of_a_region_yields_its_rights_and_segment);
	tcase_add_test(tc, desc_of_a_zero_based_region_has_the_in_page_offset_as_iova);
	tcase_add_test(tc, desc_of_several_segments_shows_all_of_them);
	tcase_add_test(tc, desc_is_stale_after_close_even_when_the_slot_is_used_again);
	tcase_add_test(tc, desc_garbage_is_recognised);
	tcase_add_test(tc, desc_no_word_of_a_slot_without_a_region_passes);
	tcase_add_test(tc, desc_short_forms_look_at_right_and_bounds);
	tcase_add_test(tc, desc_of_another_domain_is_foreign);
	tcase_add_test(tc, desc_slot_that_used_up_its_generations_is_retired);
	tcase_add_test(tc, desc_table_grows_without_moving_what_is_there);
	tcase_add_test(tc, desc_get_never_copies_half_of_a_change);
	return tc;
}

UNIT_MAIN("desc", desc)

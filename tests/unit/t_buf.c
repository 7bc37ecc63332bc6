/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local buffers, without an endpoint and without a peer: which way each takes, what the
 * device is given, what is held and given back.
 */
#include <sys/mman.h>
#include "base/env.h"
#include "buf/cache.h"
#include "buf/local.h"
#include "mr/demand/backs.h"
#include "mr_fixture.h"

#define SLOTS 256 /* of an endpoint, at most */

static struct mrf_buf buf;
static struct mrf_cache *cache;
static struct mrf_local local;

static void open_buf(uint64_t mode)
{
	env_open(mode);
	cache = mrf_cache_new(&env.space);
	ck_assert_ptr_nonnull(cache);
	mrf_buf_init(&buf, &env.space, cache);
	memset(&local, 0, sizeof(local));
}

static void drop(void)
{
	mrf_local_drop(&buf, &local);
	ck_assert_ptr_null(local.copy);
	ck_assert_ptr_null(local.temp);
	memset(&local, 0, sizeof(local));
}

/* Nothing may be held but the slots. */
static void close_buf(void)
{
	drop();
	mrf_buf_fini(&buf);
	mrf_cache_free(cache);
	env_close();
}

static int take_all(struct mrf_local *to, const struct iovec *iov, void **desc, size_t count,
		    bool arrives)
{
	struct mrf_local_req req = { .iov = iov, .desc = desc, .count = count, .arrives = arrives };
	size_t i;

	for (i = 0; i < count; i++)
		req.total += iov[i].iov_len;
	return mrf_local_take(&buf, &req, to);
}

static int take(void *addr, size_t len, void *desc, bool arrives)
{
	struct iovec iov = { addr, len };

	return take_all(&local, &iov, desc ? &desc : NULL, 1, arrives);
}

static void want_sge(int n, const void *addr, uint32_t len)
{
	ck_assert_int_lt(n, local.nsge);
	ck_assert_uint_eq(local.sge[n].addr, (uintptr_t)addr);
	ck_assert_uint_eq(local.sge[n].len, len);
}

START_TEST(buf_each_size_takes_its_way)
{
	static const struct {
		size_t len;
		bool arrives;
		enum mrf_local_kind kind;
	} want[] = { { 1, false, MRF_LOCAL_INLINE },	 { 256, false, MRF_LOCAL_INLINE },
		     { 257, false, MRF_LOCAL_BOUNCE },	 { 1, true, MRF_LOCAL_BOUNCE },
		     { 16384, false, MRF_LOCAL_BOUNCE }, { 16384, true, MRF_LOCAL_BOUNCE },
		     { 16385, false, MRF_LOCAL_CACHED }, { 16385, true, MRF_LOCAL_CACHED } };
	enum mrf_local_kind kind = want[_i].kind;

	open_buf(0);
	memset(mem, 7, 64 * PAGE);
	ck_assert_int_eq(take(mem + 3, want[_i].len, NULL, want[_i].arrives), 0);
	if (kind == MRF_LOCAL_CACHED && !mrf_mr_backs_monitored(env.space.backs))
		kind = MRF_LOCAL_TEMP;
	ck_assert_int_eq(local.kind, kind);
	ck_assert_int_eq(local.nsge, 1);
	ck_assert_uint_eq(local.sge[0].len, want[_i].len);
	if (local.kind == MRF_LOCAL_TEMP || local.kind == MRF_LOCAL_CACHED)
		want_sge(0, mem + 3, (uint32_t)want[_i].len);
	else if (!want[_i].arrives)
		ck_assert_int_eq(
			memcmp((void *)(uintptr_t)local.sge[0].addr, mem + 3, want[_i].len), 0);
	/* What arrives in a copy knows where it belongs. */
	ck_assert_int_eq(local.nuser, want[_i].arrives && local.kind == MRF_LOCAL_BOUNCE);
	close_buf();
}
END_TEST

START_TEST(buf_what_is_copied_has_a_limit_that_can_be_set)
{
	enum mrf_local_kind more = MRF_LOCAL_CACHED;

	ck_assert_int_eq(setenv("FI_MRFAB_BOUNCE_MAX", "1000", 1), 0);
	mrf_env_reload();
	open_buf(0);
	memset(mem, 7, 64 * PAGE);
	if (!mrf_mr_backs_monitored(env.space.backs))
		more = MRF_LOCAL_TEMP;
	ck_assert_int_eq(take(mem, 1000, NULL, _i), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_BOUNCE);
	drop();
	ck_assert_int_eq(take(mem, 1001, NULL, _i), 0);
	ck_assert_int_eq(local.kind, more);
	drop();
	ck_assert_int_eq(take(mem, 256, NULL, false), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_INLINE);
	close_buf();
	ck_assert_int_eq(unsetenv("FI_MRFAB_BOUNCE_MAX"), 0);
	mrf_env_reload();
}
END_TEST

START_TEST(buf_descriptors_are_used_where_they_fit)
{
	struct fid_mr *mr;

	open_buf(_i);
	mr = env_must_reg(mem, 2 * PAGE, FI_WRITE, 0);
	ck_assert_int_eq(take(mem + 100, 200, fi_mr_desc(mr), false), 0);
	ck_assert_int_eq(local.kind, _i & FI_MR_ALLOCATED ? MRF_LOCAL_DESC : MRF_LOCAL_INLINE);
	ck_assert(mrf_local_open(&buf, &local));
	env_must_close(mr);
	ck_assert_int_eq(mrf_local_open(&buf, &local), local.kind != MRF_LOCAL_DESC);
	close_buf();
}
END_TEST

START_TEST(buf_descriptors_that_do_not_fit_matter_under_local_only)
{
	struct fid_mr *mr;
	int strict = _i & FI_MR_LOCAL ? 1 : 0;

	open_buf(_i);
	mr = env_must_reg(mem, PAGE, FI_WRITE, 0);
	ck_assert_int_eq(take(mem, PAGE, NULL, false), -FI_EINVAL * strict);
	drop();
	ck_assert_int_eq(take(mem, PAGE, (void *)4711, false), -FI_EINVAL * strict);
	drop();
	ck_assert_int_eq(take(mem + 1, PAGE, fi_mr_desc(mr), false), -FI_EINVAL * strict);
	drop();
	ck_assert_int_eq(take(mem, PAGE, fi_mr_desc(mr), true), -FI_EACCES * strict);
	drop();
	env_must_close(mr);
	close_buf();
}
END_TEST

START_TEST(buf_pieces_beyond_a_work_request_come_later)
{
	struct iovec seg[16], iov[2];
	struct fid_mr *mr;
	void *desc[2];
	uint64_t first;
	int i;

	open_buf(FI_MR_LOCAL | FI_MR_ALLOCATED);
	for (i = 0; i < 16; i++)
		seg[i] = (struct iovec){ mem + 100 * i, 100 };
	iov[0] = iov[1] = (struct iovec){ mem, 1600 };
	mr = env_must_regv(seg, 16, FI_WRITE, 0);
	desc[0] = desc[1] = fi_mr_desc(mr);
	ck_assert_int_eq(take_all(&local, iov, desc, 1, false), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_DESC);
	ck_assert_int_eq(local.nsge, 16);
	drop();
	ck_assert_int_eq(take_all(&local, iov, desc, 2, false), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_DESC);
	ck_assert_int_eq(local.nsge, 16);
	first = local.sge[0].addr;
	ck_assert(mrf_local_reaches(&local, 0) && mrf_local_reaches(&local, 1599));
	ck_assert(!mrf_local_reaches(&local, 1600));
	ck_assert_int_eq(mrf_local_reach(&buf, &local, 1600), 0);
	ck_assert(!mrf_local_reaches(&local, 1599) && mrf_local_reaches(&local, 3199));
	ck_assert_int_eq(local.nsge, 16);
	ck_assert_uint_eq(local.sge[0].addr, first);
	drop();
	/* The second buffer is looked at all the same. */
	iov[1].iov_len = 1601;
	drop();
	ck_assert_int_eq(take_all(&local, iov, desc, 2, false), -FI_EINVAL);
	env_must_close(mr);
	close_buf();
}
END_TEST

/* A message of the greatest length, which is not at the beginning of a page. */
START_TEST(buf_of_more_than_the_kernel_takes_is_of_two_pieces)
{
	unsigned char *there = env_reserve(GIB + 2 * PAGE);
	struct iovec iov[3] = { { there, PAGE }, { NULL, 0 }, { there + PAGE + 32, GIB - PAGE } };

	ck_assert_int_eq(setenv("FI_MR_CACHE_MAX_COUNT", _i & 1 ? "0" : "100", 1), 0);
	mrf_env_reload();
	open_buf(0);
	ck_assert_int_eq(take(there + 32, GIB, NULL, _i & 2), 0);
	ck_assert_int_eq(local.nsge, 2);
	want_sge(0, there + 32, GIB - 32);
	want_sge(1, there + GIB, 32);
	ck_assert_uint_ge(fake_verbs.live_mrs, 2);
	drop();
	ck_assert_int_eq(take_all(&local, iov, NULL, 3, _i & 2), 0);
	ck_assert_int_eq(local.nsge, 2);
	want_sge(1, there + PAGE + 32, GIB - PAGE);
	close_buf();
	munmap(there, GIB + 2 * PAGE);
	ck_assert_int_eq(unsetenv("FI_MR_CACHE_MAX_COUNT"), 0);
	mrf_env_reload();
}
END_TEST

START_TEST(buf_without_a_slot_there_is_another_way)
{
	static struct mrf_local held[SLOTS];
	struct iovec iov;
	int i;

	open_buf(0);
	iov = (struct iovec){ mem, 3000 };
	memset(held, 0, sizeof(held));
	for (i = 0; i < SLOTS; i++) {
		ck_assert_int_eq(take_all(&held[i], &iov, NULL, 1, false), 0);
		ck_assert_int_eq(held[i].kind, MRF_LOCAL_BOUNCE);
		ck_assert(!i || held[i].copy != held[i - 1].copy);
	}
	ck_assert_int_eq(take(mem, 3000, NULL, false), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_TEMP);
	drop();
	mrf_local_drop(&buf, &held[SLOTS / 2]);
	ck_assert_int_eq(take(mem, 3000, NULL, false), 0);
	ck_assert_int_eq(local.kind, MRF_LOCAL_BOUNCE);
	for (i = 0; i < SLOTS; i++) {
		if (i != SLOTS / 2)
			mrf_local_drop(&buf, &held[i]);
	}
	close_buf();
}
END_TEST

START_TEST(buf_memory_that_is_not_there_holds_nothing)
{
	static const size_t lens[] = { 100, 3000 };
	unsigned live;

	open_buf(0);
	/* The slots themselves. */
	ck_assert_int_eq(take(mem, 3000, NULL, false), 0);
	drop();
	live = fake_verbs.live_mrs;
	ck_assert_int_eq(take(NULL, lens[_i], NULL, false), -FI_EFAULT);
	ck_assert_uint_eq(fake_verbs.live_mrs, live);
	close_buf();
}
END_TEST

START_TEST(buf_pieces_are_found_from_any_byte)
{
	struct mrf_sge sge[2];
	uint64_t len = 1000;

	memset(&local, 0, sizeof(local));
	local.sge[0] = (struct mrf_sge){ .addr = 1000, .len = 10, .lkey = 1 };
	local.sge[1] = (struct mrf_sge){ .addr = 2000, .len = 20, .lkey = 2 };
	local.sge[2] = (struct mrf_sge){ .addr = 3000, .len = 30, .lkey = 3 };
	local.nsge = 3;
	ck_assert_int_eq(mrf_local_sges(&local, 12, &len, sge, 2), 2);
	ck_assert_uint_eq(len, 48);
	ck_assert_uint_eq(sge[0].addr, 2002);
	ck_assert_uint_eq(sge[0].len, 18);
	ck_assert_uint_eq(sge[1].len, 30);
	len = 5;
	ck_assert_int_eq(mrf_local_sges(&local, 8, &len, sge, 1), 1);
	ck_assert_uint_eq(len, 2);
	ck_assert_uint_eq(sge[0].lkey, 1);
}
END_TEST

static int check(const struct iovec *iov, void **desc, bool arrives)
{
	const struct mrf_local_req req = {
		.iov = iov, .desc = desc, .count = 2, .arrives = arrives
	};

	return mrf_local_check(&buf, &req, arrives ? "results" : "operands", 1);
}

START_TEST(buf_copies_check_their_descriptors)
{
	struct iovec iov[2];
	struct fid_mr *mr;
	void *desc[2] = { NULL, NULL };

	open_buf(FI_MR_LOCAL);
	iov[0] = (struct iovec){ mem, 100 };
	iov[1] = (struct iovec){ mem + 5000, 0 };
	mr = env_must_reg(mem, 100, FI_READ, 0);
	ck_assert_int_eq(check(iov, NULL, true), -FI_EINVAL);
	desc[0] = fi_mr_desc(mr);
	ck_assert_int_eq(check(iov, desc, true), 0);
	ck_assert_int_eq(check(iov, desc, false), -FI_EACCES);
	iov[0].iov_len++;
	ck_assert_int_eq(check(iov, desc, true), -FI_EINVAL);
	env_must_close(mr);
	close_buf();
}
END_TEST

static TCase *local_buffers(void)
{
	TCase *tc = tcase_create("local");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, buf_each_size_takes_its_way, 0, 8);
	tcase_add_loop_test(tc, buf_what_is_copied_has_a_limit_that_can_be_set, 0, 2);
	tcase_add_loop_test(tc, buf_descriptors_are_used_where_they_fit, 0, 1);
	tcase_add_loop_test(tc, buf_descriptors_are_used_where_they_fit, FI_MR_ALLOCATED,
			    FI_MR_ALLOCATED + 1);
	tcase_add_loop_test(tc, buf_descriptors_that_do_not_fit_matter_under_local_only, 0, 1);
	tcase_add_loop_test(tc, buf_descriptors_that_do_not_fit_matter_under_local_only,
			    FI_MR_LOCAL, FI_MR_LOCAL + 1);
	tcase_add_test(tc, buf_pieces_beyond_a_work_request_come_later);
	tcase_add_loop_test(tc, buf_of_more_than_the_kernel_takes_is_of_two_pieces, 0, 4);
	tcase_add_test(tc, buf_without_a_slot_there_is_another_way);
	tcase_add_loop_test(tc, buf_memory_that_is_not_there_holds_nothing, 0, 2);
	tcase_add_test(tc, buf_pieces_are_found_from_any_byte);
	tcase_add_test(tc, buf_copies_check_their_descriptors);
	return tc;
}

UNIT_MAIN("buf", local_buffers)

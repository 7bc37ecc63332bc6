/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MR_MMU_NOTIFY and fi_mr_refresh; the sets of addresses behind it. */
#include <pthread.h>
#include "back_fixture.h"

static struct unit_capture cap;

static int refresh(struct fid_mr *mr, void *addr, size_t len)
{
	struct iovec iov = { addr, len };
	int ret;

	library_enter();
	ret = fi_mr_refresh(mr, &iov, 1, 0);
	library_leave();
	return ret;
}

static void refused(struct fid_mr *mr, const struct iovec *iov, size_t count, uint64_t flags,
		    int err, const char *code)
{
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_refresh(mr, iov, count, flags), err);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, code) != NULL, "%s not in %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

/* The memory is new: it has no pages. */
START_TEST(nothing_is_reached_before_it_was_refreshed)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, 0, 0), MRF_MR_OK);
	ck_assert_int_eq(refresh(mr, mem + PAGE, PAGE), 0);
	ck_assert_int_eq(reach(KEY, PAGE - 1, 2), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, 2 * PAGE - 1, 2), MRF_MR_NOT_REFRESHED);
	must_reach(KEY, PAGE, PAGE);
	/* Not a byte beside it can be reached. */
	ck_assert_uint_eq(view.seg[0].addr, PAGE);
	ck_assert_uint_eq(view.seg[0].len, PAGE);
	ck_assert(!view.once);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, 0, 8 * PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

/* --- what is there at first ------------------------------------------------------- */

static void touch(size_t at, size_t len)
{
	memset(mem + at, 1, len);
}

START_TEST(what_is_there_when_it_is_registered_needs_no_refresh)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	touch(PAGE, 3 * PAGE);
	mr = env_must_reg(mem + 10, 8 * PAGE, RW, KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, PAGE - 10, 3 * PAGE);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_ptr_eq(fake_verbs.last.mr.addr, mem + PAGE);
	ck_assert_uint_eq(fake_verbs.last.mr.length, 3 * PAGE);
	/* What has memory later has changed since. */
	touch(0, 9 * PAGE);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, PAGE - 11, 2), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, 4 * PAGE - 11, 2), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(refresh(mr, mem + 10, PAGE), 0);
	must_reach(KEY, 0, 4 * PAGE - 10);
	ck_assert_int_eq(reach(KEY, 4 * PAGE - 10, 1), MRF_MR_NOT_REFRESHED);
	env_must_close(mr);
	back_close();
}
END_TEST

/* Also the first and the last byte of a region within a page. */
START_TEST(bytes_of_pages_that_are_there_need_no_refresh)
{
	struct iovec iov[3] = { { mem, 0 } };
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	touch(3 * PAGE, 1);
	touch(9 * PAGE, 1);
	iov[0] = (struct iovec){ mem + 9 * PAGE - 50, 100 };
	iov[1] = (struct iovec){ mem + 3 * PAGE + 100, 200 };
	iov[2] = (struct iovec){ mem + 9 * PAGE + 20, 100 };
	mr = env_must_regv(iov, 3, RW, KEY);
	ck_assert_int_eq(reach(KEY, 49, 1), MRF_MR_NOT_REFRESHED);
	must_reach(KEY, 50, 350);
	ck_assert_uint_eq(view.nseg, 3);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(memory_around_what_is_not_mapped_needs_no_refresh)
{
	uint64_t first, last, below;
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY | FI_MR_VIRT_ADDR);
	touch(0, 64 * PAGE);
	munmap(mem + 8 * PAGE, 8 * PAGE);
	first = (uintptr_t)mem;
	last = first + 64 * PAGE - 1;
	/* Much as the whole address space, but for what a sanitizer has below. */
	below = first > 1ul << 36 ? first - (1ul << 36) : 0;
	mr = env_must_reg((void *)below, UINT64_MAX - below, RW, KEY);
	must_reach(KEY, first, 8 * PAGE);
	must_reach(KEY, first + 16 * PAGE, 48 * PAGE);
	ck_assert_int_eq(reach(KEY, first + 8 * PAGE - 1, 2), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, first + 16 * PAGE - 1, 2), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, last, 4), MRF_MR_NOT_REFRESHED);
	must_reach(KEY, last, 1);
	env_must_close(mr);
	back_close();
}
END_TEST

static unsigned looks;

int __real_mincore(void *addr, size_t len, unsigned char *vec);
int __wrap_mincore(void *addr, size_t len, unsigned char *vec);

int __wrap_mincore(void *addr, size_t len, unsigned char *vec)
{
	looks++;
	return __real_mincore(addr, len, vec);
}

/* 16 GiB without memory are looked at, 1024 pages at a time; it may be more that counts as not there. */
START_TEST(registering_much_that_is_not_there_takes_few_looks)
{
	const size_t len = 24ul << 30;
	struct fid_mr *mr;
	char *at;

	back_open(FI_MR_MMU_NOTIFY);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	madvise(at, len, MADV_NOHUGEPAGE);
	at[0] = at[1ul << 33] = at[len - 1] = 1;
	looks = 0;
	mr = env_must_reg(at, len, RW, KEY);
	ck_assert_uint_le(looks, 4200);
	must_reach(KEY, 0, 1);
	must_reach(KEY, 1ul << 33, PAGE);
	ck_assert_int_eq(reach(KEY, len - 1, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, len - 1, 1);
	env_must_close(mr);
	munmap(at, len);
	/* Without the bit, or where all has to be there, nobody looks. */
	looks = 0;
	fake_verbs.check_memory = false; /* it looks, too */
	env.space.mode = FI_MR_MMU_NOTIFY | FI_MR_ALLOCATED;
	env_must_close(env_must_reg(mem, PAGE, RW, KEY));
	env.space.mode = 0;
	env_must_close(env_must_reg(mem, PAGE, RW, KEY));
	ck_assert_uint_eq(looks, 0);
	back_close();
}
END_TEST

static unsigned realloc_fails; /* the how-many-th */

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return realloc_fails && !--realloc_fails ? NULL : __real_realloc(old, size);
}

START_TEST(registering_without_memory_for_what_is_there_fails)
{
	struct fid_mr *mr = NULL;
	unsigned i;

	back_open(FI_MR_MMU_NOTIFY);
	for (i = 0; i < 64; i += 2)
		touch(i * PAGE, 1);
	for (i = 1; i <= 3; i++) {
		unit_capture(&cap);
		realloc_fails = i;
		ck_assert_int_eq(env_reg(mem, 64 * PAGE, RW, KEY, &mr), -FI_ENOMEM);
		ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3022"));
		ck_assert_ptr_null(mr);
	}
	mr = env_must_reg(mem, 64 * PAGE, RW, KEY);
	must_reach(KEY, 62 * PAGE, PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

/* --- refreshing ------------------------------------------------------------------- */

START_TEST(allocated_memory_is_reached_without_a_refresh_until_it_changes)
{
	struct iovec iov[2] = { { mem, 0 }, { NULL, 0 } };
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY | FI_MR_ALLOCATED);
	iov[0] = (struct iovec){ mem + 10, 2 * PAGE };
	iov[1] = (struct iovec){ mem + 4 * PAGE, PAGE };
	mr = env_must_regv(iov, 2, RW, KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 0, 3 * PAGE);
	/* Told of, new pages are reached, and the others as before. */
	ck_assert_ptr_eq(mmap(mem + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + 4 * PAGE);
	ck_assert_int_eq(refresh(mr, mem + 4 * PAGE, PAGE), 0);
	ck_assert_uint_eq(fake_verbs_covering(mem + 4 * PAGE, PAGE), 0);
	must_reach(KEY, 0, 3 * PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(allocated_memory_is_checked_when_it_is_registered)
{
	struct fid_mr *mr = NULL;
	const char *text;

	back_open(FI_MR_MMU_NOTIFY | FI_MR_ALLOCATED);
	munmap(mem + PAGE, PAGE);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, 3 * PAGE, RW, KEY, &mr), -FI_EFAULT);
	fake_verbs_fail(FAKE_REG_MR, 1, ENOMEM);
	ck_assert_int_eq(env_reg(mem, PAGE, RW, KEY, &mr), -FI_ENOMEM);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "bytes 4096..8191 of it are not mapped"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3018"));
	ck_assert_ptr_null(mr);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(ranges_may_be_bytes_and_grow_together)
{
	struct iovec iov[3] = { { mem, 0 } };
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	iov[0] = (struct iovec){ mem + 300, 100 };
	iov[1] = (struct iovec){ mem + 50, 0 };
	iov[2] = (struct iovec){ mem + 100, 200 };
	ck_assert_int_eq(fi_mr_refresh(mr, iov, 3, 0), 0);
	must_reach(KEY, (uintptr_t)mem + 100, 300);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_ptr_eq(fake_verbs.last.mr.addr, mem + 100);
	ck_assert_uint_eq(fake_verbs.last.mr.length, 300);
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + 99, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + 400, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(refresh(mr, mem, 200), 0);
	must_reach(KEY, (uintptr_t)mem, 400);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_refresh_unpins_what_it_covers_and_the_key_goes_on)
{
	struct mrf_mr_seg before;
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_int_eq(refresh(mr, mem, 4 * PAGE), 0);
	must_reach(KEY, 0, PAGE);
	ck_assert_int_eq(refresh(mr, mem + 4 * PAGE, 4 * PAGE), 0);
	must_reach(KEY, 4 * PAGE, PAGE);
	before = view.seg[0];
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	ck_assert_uint_eq(atomic_load(&told), 0);
	ck_assert_int_eq(refresh(mr, mem + 3 * PAGE, 10), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(fake_verbs_covering(mem, 4 * PAGE), 0);
	ck_assert_uint_eq(atomic_load(&told), 1);
	must_reach(KEY, 4 * PAGE, PAGE);
	ck_assert_uint_eq(view.seg[0].rkey, before.rkey);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(each_range_of_a_refresh_is_renewed)
{
	struct iovec iov[2], range[2];
	struct fid_mr *mr;
	unsigned i;

	back_open(FI_MR_MMU_NOTIFY);
	/* Apart, so that each has a pin of its own. */
	for (i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ mem + 4 * i * PAGE, 2 * PAGE };
		range[i] = (struct iovec){ mem + (4 * i + 1) * PAGE, 1 };
	}
	mr = env_must_regv(iov, 2, RW, KEY);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, 0, 4 * PAGE);
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	ck_assert_int_eq(fi_mr_refresh(mr, range, 2, 0), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 0, 4 * PAGE);
	ck_assert_int_eq(fi_mr_refresh(mr, range + 1, 1, 0), 0);
	ck_assert_uint_eq(fake_verbs_covering(mem, 2 * PAGE), 1);
	ck_assert_uint_eq(fake_verbs_covering(mem + 4 * PAGE, 2 * PAGE), 0);
	env_must_close(mr);
	back_close();
}
END_TEST

static unsigned let_through; /* pins of mem when peers are told, the most */

static void look_who_is_let_through(void *arg)
{
	unsigned pins = fake_verbs_covering(mem, 8 * PAGE);

	tell(arg);
	let_through = pins > let_through ? pins : let_through;
}

/* From the moment on at which peers are told, and not only when the call returns. */
START_TEST(nobody_is_let_through_while_a_region_is_refreshed)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	env.space.dropped = look_who_is_let_through;
	let_through = 0;
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_int_eq(refresh(mr, mem, 4 * PAGE), 0);
	must_reach(KEY, 0, PAGE);
	ck_assert_int_eq(refresh(mr, mem + 4 * PAGE, 4 * PAGE), 0);
	must_reach(KEY, 4 * PAGE, PAGE);
	ck_assert_uint_gt(fake_verbs_covering(mem, 8 * PAGE), 0);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_uint_eq(atomic_load(&told), 1);
	ck_assert_uint_eq(let_through, 0);
	must_reach(KEY, 0, 8 * PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(no_monitor_is_used_where_the_application_tells)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, 0, PAGE);
	munmap(mem, PAGE);
	ck_assert(!mrf_monitor_usable());
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_MAPPED);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(wrong_ranges_are_refused_and_change_nothing)
{
	struct iovec iov[2];
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	iov[0] = (struct iovec){ mem, PAGE };
	iov[1] = (struct iovec){ mem + 4 * PAGE, PAGE };
	mr = env_must_regv(iov, 2, RW, KEY);
	unit_capture(&cap);
	ck_assert_int_eq(fi_control(&mr->fid, FI_REFRESH, NULL), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3520"));
	refused(mr, iov, 2, 1, -FI_EBADFLAGS, "MRF-E3058");
	refused(mr, iov, 0, 0, -FI_EINVAL, "MRF-E3059");
	refused(mr, NULL, 2, 0, -FI_EINVAL, "MRF-E3059");
	iov[1] = (struct iovec){ mem + 4 * PAGE, SIZE_MAX };
	refused(mr, iov, 2, 0, -FI_EINVAL, "MRF-E3060");
	iov[1] = (struct iovec){ mem + 4 * PAGE, PAGE + 1 };
	refused(mr, iov, 2, 0, -FI_EINVAL, "MRF-E3061");
	iov[1] = (struct iovec){ mem + 4 * PAGE - 1, 1 };
	refused(mr, iov, 2, 0, -FI_EINVAL, "MRF-E3061");
	iov[1] = (struct iovec){ mem, 5 * PAGE };
	refused(mr, iov, 2, 0, -FI_EINVAL, "MRF-E3061");
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_REFRESHED);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_range_may_run_over_segments_that_touch)
{
	struct iovec iov[2];
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	iov[0] = (struct iovec){ mem + PAGE, PAGE };
	iov[1] = (struct iovec){ mem, PAGE };
	mr = env_must_regv(iov, 2, RW, KEY);
	ck_assert_int_eq(refresh(mr, mem + 100, PAGE), 0);
	/* Positions go by the segments, refreshed is what lies in memory. */
	must_reach(KEY, PAGE + 100, PAGE - 100);
	must_reach(KEY, 0, 100);
	ck_assert_int_eq(reach(KEY, 0, 101), MRF_MR_NOT_REFRESHED);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(without_mmu_notify_a_refresh_is_allowed_and_unpins)
{
	struct fid_mr *mr;

	back_open(0);
	if (_i)
		use_no_monitor();
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, PAGE);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_int_eq(refresh(mr, mem, PAGE), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 0, PAGE);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	refused(mr, NULL, 0, 1, -FI_EBADFLAGS, "MRF-E3058");
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_refresh_of_the_whole_address_space_is_one_range)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY | FI_MR_VIRT_ADDR);
	mr = env_must_reg(NULL, UINT64_MAX, RW, KEY);
	ck_assert_int_eq(refresh(mr, NULL, UINT64_MAX), 0);
	must_reach(KEY, (uintptr_t)mem, PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_failed_refresh_changes_nothing)
{
	struct fid_mr *mr;
	unsigned nth;
	int ret = -1;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	for (nth = 1; ret; nth++) {
		ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_REFRESHED);
		fail_alloc(nth);
		unit_capture(&cap);
		ret = refresh(mr, mem, PAGE);
		fail_alloc(0);
		ck_assert(!ret == !strstr(unit_captured(&cap), "MRF-E3022"));
		ck_assert(!ret || ret == -FI_ENOMEM);
	}
	ck_assert_uint_eq(nth, 5);
	must_reach(KEY, 0, PAGE);
	unit_capture(&cap);
	fake_verbs_fail_always(FAKE_REVOKE_MR, EBUSY);
	fake_verbs_fail_always(FAKE_DEREG_MR, EBUSY);
	ck_assert_int_eq(refresh(mr, mem, PAGE), -FI_EBUSY);
	unit_captured(&cap);
	fake_verbs_fail(FAKE_REVOKE_MR, 0, 0);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	must_reach(KEY, 0, PAGE);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	back_close();
}
END_TEST

static struct fid_mr *busy_mr;

static void refresh_it(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	fake_verbs.on_reg = NULL;
	fi_mr_refresh(busy_mr, NULL, 0, 0);
}

START_TEST(what_is_refreshed_while_it_is_pinned_is_pinned_anew)
{
	back_open(_i ? FI_MR_MMU_NOTIFY : 0);
	use_no_monitor();
	busy_mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fi_mr_refresh(busy_mr, NULL, 0, 0);
	fake_verbs.on_reg = refresh_it;
	must_reach(KEY, 0, PAGE);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 2);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(busy_mr);
	back_close();
}
END_TEST

static void refresh_elsewhere(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	ck_assert_int_eq(refresh(busy_mr, mem + 7 * PAGE, PAGE), 0);
}

START_TEST(bytes_may_be_refreshed_all_the_time_while_others_are_pinned)
{
	back_open(_i ? FI_MR_MMU_NOTIFY : 0);
	use_no_monitor();
	busy_mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fi_mr_refresh(busy_mr, NULL, 0, 0);
	fake_verbs.on_reg = refresh_elsewhere;
	must_reach(KEY, 0, PAGE);
	fake_verbs.on_reg = NULL;
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(busy_mr);
	back_close();
}
END_TEST

static void ask_again(const struct ibv_mr *mr)
{
	(void)mr;
	if (fake_verbs.calls[FAKE_REG_MR] < 5)
		must_reach(KEY, 0, PAGE);
}

START_TEST(a_refresh_leaves_alone_what_was_leased_after_it_began)
{
	back_open(0);
	use_no_monitor();
	busy_mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, PAGE);
	fake_verbs.on_dereg = ask_again;
	ck_assert_int_eq(fi_mr_refresh(busy_mr, NULL, 0, 0), 0);
	fake_verbs.on_dereg = NULL;
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 2);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(busy_mr);
	back_close();
}
END_TEST

/* --- several threads -------------------------------------------------------------- */

static void *refresh_often(void *arg)
{
	unsigned i;

	for (i = 0; i < 200; i++)
		ck_assert_int_eq(refresh(busy_mr, (char *)arg + i % 4 * PAGE, PAGE), 0);
	return NULL;
}

static void *ask_often(void *arg)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE };
	struct mrf_mr_lease mine;
	struct mrf_mr_view answer;
	unsigned i;

	(void)arg;
	mrf_mr_lease_init(&mine);
	for (i = 0; i < 200; i++) {
		ask.addr = i % 8 * PAGE;
		mrf_mr_reach(&env.space, &ask, &mine, &answer);
		ck_assert(answer.status == MRF_MR_OK || answer.status == MRF_MR_NOT_REFRESHED ||
			  answer.status == MRF_MR_NO_ROOM);
	}
	mrf_mr_lease_end(&mine);
	return NULL;
}

START_TEST(threads_may_refresh_and_ask_at_once)
{
	pthread_t thread[4];
	unsigned i;

	back_open(FI_MR_MMU_NOTIFY);
	busy_mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	/* As the agent does, one thread asks. */
	pthread_create(&thread[0], NULL, ask_often, NULL);
	for (i = 1; i < 4; i++)
		pthread_create(&thread[i], NULL, refresh_often, mem + i % 2 * 4 * PAGE);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	must_reach(KEY, 0, 8 * PAGE);
	env_must_close(busy_mr);
	back_close();
}
END_TEST

/* --- sets of addresses ------------------------------------------------------------ */

START_TEST(spans_are_sorted_and_joined)
{
	struct mrf_span span[] = { { 50, 60 }, { 10, 20 }, { 30, 30 }, { 20, 25 },
				   { 55, 58 }, { 40, 50 }, { 0, 5 },   { 90, 80 } };
	static const struct mrf_span want[] = { { 0, 5 }, { 10, 25 }, { 40, 60 } };
	struct mrf_spans set = { 8, span };

	mrf_spans_tidy(&set);
	ck_assert_uint_eq(set.count, 3);
	ck_assert_mem_eq(span, want, sizeof(want));
	ck_assert(mrf_spans_have(&set, 10, 25) && mrf_spans_have(&set, 12, 13));
	ck_assert(!mrf_spans_have(&set, 10, 26) && !mrf_spans_have(&set, 9, 12));
	ck_assert(!mrf_spans_have(&set, 4, 11) && mrf_spans_have(&set, 30, 30));
	ck_assert(mrf_spans_meet(&set, 24, 40) && mrf_spans_meet(&set, 0, 100));
	ck_assert(!mrf_spans_meet(&set, 25, 40) && !mrf_spans_meet(&set, 60, 99));
	ck_assert(!mrf_spans_meet(&set, 12, 12));
	ck_assert_ptr_eq(mrf_spans_at(&set, 24), &span[1]);
	ck_assert_ptr_null(mrf_spans_at(&set, 25));
	set.count = 0;
	mrf_spans_tidy(&set);
	ck_assert(!mrf_spans_meet(&set, 0, 100) && !mrf_spans_have(&set, 0, 1));
}
END_TEST

static TCase *at_first(void)
{
	TCase *tc = tcase_create("at first");

	tcase_add_test(tc, what_is_there_when_it_is_registered_needs_no_refresh);
	tcase_add_test(tc, bytes_of_pages_that_are_there_need_no_refresh);
	tcase_add_test(tc, memory_around_what_is_not_mapped_needs_no_refresh);
	tcase_add_test(tc, registering_much_that_is_not_there_takes_few_looks);
	tcase_add_test(tc, registering_without_memory_for_what_is_there_fails);
	return tc;
}

static TCase *refreshing(void)
{
	TCase *tc = tcase_create("refreshing");

	tcase_add_test(tc, nothing_is_reached_before_it_was_refreshed);
	tcase_add_test(tc, allocated_memory_is_reached_without_a_refresh_until_it_changes);
	tcase_add_test(tc, allocated_memory_is_checked_when_it_is_registered);
	tcase_add_test(tc, ranges_may_be_bytes_and_grow_together);
	tcase_add_test(tc, a_refresh_unpins_what_it_covers_and_the_key_goes_on);
	tcase_add_test(tc, each_range_of_a_refresh_is_renewed);
	tcase_add_test(tc, nobody_is_let_through_while_a_region_is_refreshed);
	tcase_add_test(tc, no_monitor_is_used_where_the_application_tells);
	tcase_add_test(tc, wrong_ranges_are_refused_and_change_nothing);
	tcase_add_test(tc, a_range_may_run_over_segments_that_touch);
	tcase_add_loop_test(tc, without_mmu_notify_a_refresh_is_allowed_and_unpins, 0, 2);
	tcase_add_test(tc, a_refresh_of_the_whole_address_space_is_one_range);
	tcase_add_test(tc, a_failed_refresh_changes_nothing);
	tcase_add_loop_test(tc, what_is_refreshed_while_it_is_pinned_is_pinned_anew, 0, 2);
	tcase_add_loop_test(tc, bytes_may_be_refreshed_all_the_time_while_others_are_pinned, 0, 2);
	tcase_add_test(tc, a_refresh_leaves_alone_what_was_leased_after_it_began);
	tcase_add_test(tc, threads_may_refresh_and_ask_at_once);
	return tc;
}

static TCase *sets(void)
{
	TCase *tc = tcase_create("sets");

	tcase_add_test(tc, spans_are_sorted_and_joined);
	return tc;
}

UNIT_MAIN("refresh", at_first, refreshing, sets)

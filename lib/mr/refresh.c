/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_refresh: it drops the pins that it touches before it returns. Under
 * FI_MR_MMU_NOTIFY neither the monitor nor leases are used.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/demand/back.h"
#include "mr/demand/spans.h"
#include "mr/demand/unpin.h"
#include "mr/face.h"
#include "mr/mr_calls.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/region_state.h"

static int refuse_range(const struct iovec *iov, size_t i)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3060,
			  "fi_mr_refresh: iov[%zu]: %p + %zu byte%s passes the end of the "
			  "address space",
			  i, iov[i].iov_base, iov[i].iov_len, MRF_S(iov[i].iov_len));
}

static int refuse_outside(const struct mrf_mr *mr, const struct iovec *iov, size_t i)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3061,
			  "fi_mr_refresh: iov[%zu]: %p + %zu byte%s is not wholly inside "
			  "the region, whose first segment is %#lx + %lu byte%s",
			  i, iov[i].iov_base, iov[i].iov_len, MRF_S(iov[i].iov_len),
			  mr->segs[0].addr, mr->segs[0].len, MRF_S(mr->segs[0].len));
}

/* The addresses of the region. span has room for its segments. */
static void all_of(const struct mrf_mr *mr, struct mrf_spans *all)
{
	unsigned i;

	for (i = 0; i < mr->nseg; i++)
		all->span[i] = (struct mrf_span){ .start = mr->segs[i].addr,
						  .end = mr->segs[i].addr + mr->segs[i].len };
	all->count = mr->nseg;
	mrf_spans_tidy(all);
}

static int check_covered(const struct mrf_mr *mr, const struct mrf_spans *all,
			 const struct iovec *iov, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t start = (uintptr_t)iov[i].iov_base;

		if (!mrf_range_ok(start, iov[i].iov_len))
			return refuse_range(iov, i);
		if (!mrf_spans_have(all, start, start + iov[i].iov_len))
			return refuse_outside(mr, iov, i);
	}
	return 0;
}

/* The addresses that are to be refreshed; allocated. */
static int make_spans(const struct mrf_mr *mr, const struct iovec *iov, size_t count,
		      struct mrf_spans *spans)
{
	struct mrf_span span[MRF_MR_IOV_LIMIT];
	struct mrf_spans all = { .span = span };
	size_t i, n = iov ? count : mr->nseg;
	int ret;

	all_of(mr, &all);
	ret = iov ? check_covered(mr, &all, iov, count) : 0;
	if (ret)
		return ret;
	spans->span = calloc(n, sizeof(*span));
	if (!spans->span)
		return -FI_ENOMEM;
	if (!iov)
		memcpy(spans->span, all.span, all.count * sizeof(*span));
	for (i = 0; iov && i < count; i++) {
		spans->span[i].start = (uintptr_t)iov[i].iov_base;
		spans->span[i].end = spans->span[i].start + iov[i].iov_len;
	}
	spans->count = (unsigned)(iov ? count : all.count);
	mrf_spans_tidy(spans);
	return 0;
}

/* The union of two sets, allocated. */
static int unite(const struct mrf_spans *a, const struct mrf_spans *b, struct mrf_spans *both)
{
	both->count = a->count + b->count;
	both->span = calloc(mrf_max(both->count, 1u), sizeof(*both->span));
	if (!both->span)
		return -FI_ENOMEM;
	if (a->count)
		memcpy(both->span, a->span, a->count * sizeof(*a->span));
	if (b->count)
		memcpy(both->span + a->count, b->span, b->count * sizeof(*b->span));
	mrf_spans_tidy(both);
	return 0;
}

/* From now on no thread pins old pages; the existing pins go into list. */
static uint64_t renew_locked(struct mrf_mr_back *back, const struct mrf_spans *spans,
			     struct mrf_list *list)
{
	struct mrf_mr_space *space = back->space;

	back->clock++;
	mrf_pins_spoil_locked(back, spans);
	mrf_pins_take_locked(back, spans, list);
	if (!mrf_list_empty(list) && space->dropped)
		space->dropped(space->dropped_arg);
	return back->clock;
}

/* A backing that a refresh is done to: the region's own, or one of its faces'. */
struct renewed {
	struct mrf_mr_back *back; /* with a reference */
	uint64_t clock;
};

/* Allocated; NULL: no memory. */
static struct renewed *gather_renewed_locked(struct mrf_mr *mr, size_t *count)
{
	const struct mrf_mr_face *face;
	struct renewed *all;
	size_t n = 1;

	mrf_lock_held(&mr->space->lock);
	for (face = mr->faces; face; face = face->next)
		n++;
	all = calloc(n, sizeof(*all));
	if (!all)
		return NULL;
	*count = 0;
	all[(*count)++].back = mr->back;
	for (face = mr->faces; face; face = face->next)
		all[(*count)++].back = face->back;
	for (n = 0; n < *count; n++)
		mrf_mr_back_get(all[n].back);
	return all;
}

/* Renews all backings at once: a thread that pins finds all of them refreshed or none. */
static void renew_all_locked(struct mrf_mr_back *master, struct mrf_spans *both,
			     const struct mrf_spans *spans, struct renewed *all, size_t count,
			     struct mrf_list *list)
{
	struct mrf_spans old = *both;
	size_t i;

	mrf_lock_held(&master->space->lock);
	mrf_monitor_lock();
	if (master->notify) {
		old = master->refreshed;
		master->refreshed = *both;
	}
	for (i = 0; i < count; i++)
		all[i].clock = renew_locked(all[i].back, spans, list);
	mrf_monitor_unlock();
	free(old.span);
}

/* space->lock keeps other refreshes of the region away while memory is allocated. */
static struct renewed *renew(struct mrf_mr *mr, const struct mrf_spans *spans,
			     struct mrf_list *list, size_t *count)
{
	struct mrf_spans both = { 0 };
	struct renewed *all = NULL;

	mrf_lock_take(&mr->space->lock);
	if (!mr->back->notify || !unite(&mr->back->refreshed, spans, &both))
		all = gather_renewed_locked(mr, count);
	if (all)
		renew_all_locked(mr->back, &both, spans, all, *count, list);
	else
		free(both.span);
	mrf_lock_release(&mr->space->lock);
	return all;
}

static int refuse_region_memory(void)
{
	return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
}

/* Unpins what was taken and what was leased before, and lets go of the backings. */
static int finish_refresh(struct mrf_mr_space *space, const struct mrf_spans *spans,
			  struct mrf_list *list, struct renewed *all, size_t count)
{
	int first = mrf_pins_end(space->backs, list), ret;
	size_t i;

	for (i = 0; i < count; i++) {
		ret = mrf_pins_end_leased(all[i].back, spans, all[i].clock);
		first = first ? first : ret;
		mrf_mr_back_put(all[i].back);
	}
	free(all);
	return first;
}

/*
 * Refreshes an enabled region that has a backing. -FI_EINVAL and -FI_ENOMEM (logged):
 * nothing changed; any other error is that of a kernel that keeps a region. No lock held.
 */
static int renew_ranges(struct mrf_mr *mr, const struct iovec *iov, size_t count)
{
	struct mrf_spans spans = { 0 };
	struct mrf_list list;
	struct renewed *all;
	size_t n;
	int ret = make_spans(mr, iov, count, &spans);

	if (ret)
		return ret == -FI_ENOMEM ? refuse_region_memory() : ret;
	mrf_list_init(&list);
	all = renew(mr, &spans, &list, &n);
	ret = all ? finish_refresh(mr->space, &spans, &list, all, n) : refuse_region_memory();
	free(spans.span);
	return ret;
}

/* Each copy looks the memory up again, so there is nothing to renew. */
static int refresh_device(const struct mrf_mr *mr, const struct iovec *iov, size_t count)
{
	struct mrf_span span[MRF_MR_IOV_LIMIT];
	struct mrf_spans all = { .span = span };

	all_of(mr, &all);
	return check_covered(mr, &all, iov, count);
}

/* --- fi_mr_refresh ---------------------------------------------------------------- */

static int refuse_list(const struct mrf_mr *mr, const struct iovec *iov, size_t count)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3059,
			  "fi_mr_refresh(region %p): iov=%p, count=%zu: they must be "
			  "ranges, or NULL and 0 for the whole region",
			  (const void *)mr, (const void *)iov, count);
}

static int refuse_whole(const struct mrf_mr *mr)
{
	const struct mrf_profile *profile = mr->space->profile;

	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3059,
			  "fi_mr_refresh(region %p): iov is NULL, and must be ranges with "
			  "FI_MRFAB_PROFILE=%s (%s)",
			  (const void *)mr, profile->name, profile->what);
}

static int refresh_ranges(struct mrf_mr *mr, const struct fi_mr_modify *modify)
{
	const struct iovec *iov = modify->attr.mr_iov;
	size_t count = modify->attr.iov_count;

	if (!mr->back && !mr->device)
		return mrf_refuse(FI_ENOSYS, FI_LOG_MR, 3045,
				  "fi_mr_refresh(region %p): there is nothing to "
				  "refresh, because FI_MR_MMU_NOTIFY is not in force and "
				  "the region is pinned for good",
				  (void *)mr);
	if (modify->flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_MR, 3058,
				  "fi_mr_refresh(region %p): flags must be 0, not %#lx", (void *)mr,
				  modify->flags);
	if (!iov != !count)
		return refuse_list(mr, iov, count);
	if (!iov && mrf_mr_profiled_habit(mr->space, MRF_HABIT_RIGHT_NEEDED))
		return refuse_whole(mr);
	if (mr->device)
		return refresh_device(mr, iov, count);
	return renew_ranges(mr, iov, count);
}

int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify)
{
	int ret;

	if (!modify)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3520,
				  "fi_control(region %p, FI_REFRESH): attr must not be NULL",
				  (void *)mr);
	ret = mrf_mr_enter(mr, MRF_CALL_REFRESH, NULL);
	if (ret)
		return ret;
	ret = refresh_ranges(mr, modify);
	mrf_mr_leave(mr);
	return ret;
}

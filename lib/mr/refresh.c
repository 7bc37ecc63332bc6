/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/pin.h"

static int refuse_wrap(const struct iovec *iov, size_t i)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3060,
			  "fi_mr_refresh: iov[%zu]: %p + %zu bytes passes the end of the "
			  "address space",
			  i, iov[i].iov_base, iov[i].iov_len);
}

static int refuse_outside(const struct mrf_mr_back *back, const struct iovec *iov,
			  size_t i)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3061,
			  "fi_mr_refresh: iov[%zu]: %p + %zu bytes are not wholly inside "
			  "the region, whose first segment is %#llx + %llu bytes",
			  i, iov[i].iov_base, iov[i].iov_len,
			  (unsigned long long)back->extent[0].addr,
			  (unsigned long long)back->extent[0].len);
}

/* The addresses of the region. span has room for its extents. */
static void all_of(const struct mrf_mr_back *back, struct mrf_spans *all)
{
	unsigned i;

	for (i = 0; i < back->nextent; i++)
		all->span[i] = (struct mrf_span){ .start = back->extent[i].addr,
						  .end = back->extent[i].addr +
							 back->extent[i].len };
	all->count = back->nextent;
	mrf_spans_tidy(all);
}

static int check(const struct mrf_mr_back *back, const struct mrf_spans *all,
		 const struct iovec *iov, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t start = (uintptr_t)iov[i].iov_base;

		if (!mrf_range_ok(start, iov[i].iov_len))
			return refuse_wrap(iov, i);
		if (!mrf_spans_have(all, start, start + iov[i].iov_len))
			return refuse_outside(back, iov, i);
	}
	return 0;
}

/* What is to be refreshed; allocated. */
static int make_spans(const struct mrf_mr_back *back, const struct iovec *iov,
		      size_t count, struct mrf_spans *spans)
{
	struct mrf_span span[MRF_MR_IOV_LIMIT];
	struct mrf_spans all = { .span = span };
	size_t i, n = iov ? count : back->nextent;
	int ret;

	all_of(back, &all);
	ret = iov ? check(back, &all, iov, count) : 0;
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
static int unite(const struct mrf_spans *a, const struct mrf_spans *b,
		 struct mrf_spans *both)
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

/* Nobody pins old pages any more; what is pinned comes into list. Lock held. */
static uint64_t renew_locked(struct mrf_mr_back *back, const struct mrf_spans *spans,
			     struct mrf_list *list)
{
	struct mrf_mr_space *space = back->space;

	back->clock++;
	mrf_pins_spoil(back, spans);
	mrf_pins_take(back, spans, list);
	if (!mrf_list_empty(list) && space->dropped)
		space->dropped(space->dropped_arg);
	return back->clock;
}

/* space->lock keeps other refreshes of the region away while memory is allocated. */
static int renew(struct mrf_mr_back *back, const struct mrf_spans *spans,
		 struct mrf_list *list, uint64_t *clock)
{
	struct mrf_spans old = { 0 }, both = { 0 };
	int ret = 0;

	mrf_lock_take(&back->space->lock);
	if (back->notify)
		ret = unite(&back->refreshed, spans, &both);
	if (!ret) {
		mrf_monitor_lock();
		if (back->notify) {
			old = back->refreshed;
			back->refreshed = both;
		}
		*clock = renew_locked(back, spans, list);
		mrf_monitor_unlock();
	}
	mrf_lock_release(&back->space->lock);
	free(old.span);
	return ret;
}

static int refuse_memory(void)
{
	return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "no memory for a region");
}

int mrf_mr_back_refresh(struct mrf_mr_back *back, const struct iovec *iov, size_t count)
{
	struct mrf_spans spans = { 0 };
	struct mrf_list list;
	uint64_t clock = 0;
	int ret, more;

	ret = make_spans(back, iov, count, &spans);
	if (ret)
		return ret == -FI_ENOMEM ? refuse_memory() : ret;
	mrf_list_init(&list);
	ret = renew(back, &spans, &list, &clock);
	if (ret) {
		free(spans.span);
		return refuse_memory();
	}
	ret = mrf_pins_end(back->space->backs, &list);
	more = mrf_pins_end_leased(back, &spans, clock);
	free(spans.span);
	return ret ? ret : more;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "mr/class.h"
#include "mr/demand/back.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "base/present.h"

static int by_addr(const void *a, const void *b)
{
	const struct mrf_extent *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Segments may overlap; all positions of one address are the same byte to peers. */
static unsigned merge(struct mrf_extent *extent, unsigned count)
{
	unsigned i, n = 0;

	qsort(extent, count, sizeof(*extent), by_addr);
	for (i = 1; i < count; i++) {
		struct mrf_extent *last = &extent[n];

		if (extent[i].addr - last->addr <= last->len)
			last->len = mrf_max(last->len, extent[i].addr - last->addr + extent[i].len);
		else
			extent[++n] = extent[i];
	}
	return n + 1;
}

static unsigned make_extents(struct mrf_mr_back *back, const struct mrf_mr_seg *segs, unsigned nseg)
{
	bool virt = back->space->mode & FI_MR_VIRT_ADDR;
	uint64_t pos = 0;
	unsigned i;

	for (i = 0; i < nseg; i++) {
		back->own[i] = (struct mrf_extent){ .pos = virt ? segs[i].addr : pos,
						    .addr = segs[i].addr,
						    .len = segs[i].len };
		pos += segs[i].len;
	}
	return virt ? merge(back->own, nseg) : nseg;
}

static struct mrf_mr_back *back_new(struct mrf_mr_space *space, unsigned rights, unsigned extents)
{
	struct mrf_mr_back *back = calloc(1, sizeof(*back) + extents * sizeof(back->own[0]));

	if (!back)
		return NULL;
	atomic_init(&back->refs, 1);
	back->space = space;
	back->rights = rights;
	back->notify = space->mode & FI_MR_MMU_NOTIFY;
	mrf_list_init(&back->making);
	mrf_list_init(&back->leased);
	return back;
}

struct mrf_mr_back *mrf_mr_back_new(struct mrf_mr_space *space, unsigned rights,
				    const struct mrf_mr_seg *segs, unsigned nseg)
{
	struct mrf_mr_back *back = back_new(space, rights, nseg);

	if (!back)
		return NULL;
	back->master = back;
	back->extent = back->own;
	back->nextent = make_extents(back, segs, nseg);
	return back;
}

struct mrf_mr_back *mrf_mr_back_face(struct mrf_mr_back *master, struct mrf_mr_class *class,
				     unsigned rights)
{
	struct mrf_mr_back *back = back_new(master->space, rights, 0);

	if (!back)
		return NULL;
	mrf_mr_back_get(master);
	back->master = master;
	back->extent = master->extent;
	back->nextent = master->nextent;
	mrf_lock_take(&back->space->lock);
	mrf_mr_class_get_locked(class);
	mrf_lock_release(&back->space->lock);
	back->class = class;
	return back;
}

void mrf_mr_back_get(struct mrf_mr_back *back)
{
	atomic_fetch_add_explicit(&back->refs, 1, memory_order_relaxed);
}

void mrf_mr_back_put(struct mrf_mr_back *back)
{
	if (atomic_fetch_sub_explicit(&back->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (back->master != back)
		mrf_mr_back_put(back->master);
	mrf_mr_class_put(back->class);
	free(back->refreshed.span);
	free(back);
}

/* --- what is there ------------------------------------------------------------------ */

/*
 * The call that creates the region finds out which pages are there (back.h). The first
 * access would be too late, because it could not tell these pages from pages that came in
 * between.
 *
 * mincore(2) answers for 16 MiB at a time; if not all of them are mapped, the search goes from
 * mapping to mapping. Looking at a page that is there costs much less than its first use did,
 * so all of them are looked at. A terabyte of pages without memory may be registered, of which
 * 16 GiB are looked at (PATIENCE). Pages behind these count as not there, which costs a refresh
 * and never shows a peer anything. (PAGEMAP_SCAN needs no such bound, but Linux 6.7.)
 */
/* Pages without memory; the rest then counts as not there. */
#define PATIENCE (4u << 20)

/* The pages that were found so far. */
struct found {
	struct mrf_spans spans;
	unsigned room;
	const struct mrf_extent *extent; /* the pages are looked for in it */
};

static int make_span_room(struct found *found)
{
	unsigned room = found->room ? 2 * found->room : 4;
	struct mrf_span *span = realloc(found->spans.span, room * sizeof(*span));

	if (!span)
		return -FI_ENOMEM;
	found->spans.span = span;
	found->room = room;
	return 0;
}

/* Adds the bytes of these whole pages that are inside the extent. */
static int add_found(void *arg, uint64_t start, uint64_t end)
{
	struct found *found = arg;
	struct mrf_spans *spans = &found->spans;
	int ret = 0;

	start = mrf_max(start, found->extent->addr);
	end = mrf_min(end, found->extent->addr + found->extent->len);
	if (start >= end)
		return 0;
	if (spans->count && spans->span[spans->count - 1].end == start) {
		spans->span[spans->count - 1].end = end;
		return 0;
	}
	if (spans->count == found->room)
		ret = make_span_room(found);
	if (!ret)
		spans->span[spans->count++] = (struct mrf_span){ start, end };
	return ret;
}

int mrf_mr_back_present(struct mrf_mr_back *back)
{
	struct found found = { .room = 0 };
	struct mrf_present look = { .found = add_found, .arg = &found, .patience = PATIENCE };
	unsigned i;
	int ret = 0;

	for (i = 0; i < back->nextent && back->notify && ret != -FI_ENOMEM; i++) {
		const struct mrf_extent *extent = &back->extent[i];
		uint64_t end = extent->addr + extent->len;

		found.extent = extent;
		/* After other errors, pages that were not looked at count as absent. */
		ret = back->space->mode & FI_MR_ALLOCATED
			      ? add_found(&found, extent->addr, end)
			      : mrf_present_look(&look, extent->addr, end);
	}
	mrf_spans_tidy(&found.spans);
	back->refreshed = found.spans;
	return ret == -FI_ENOMEM ? ret : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call that creates the region finds out which pages are there (present.h). The first
 * access would be too late, because it could not tell these pages from pages that came in
 * between.
 *
 * mincore(2) answers for 16 MiB at a time; if not all of them are mapped, the search goes from
 * mapping to mapping. Looking at a page that is there costs much less than its first use did,
 * so all of them are looked at. A terabyte of pages without memory may be registered, of which
 * 16 GiB are looked at (PATIENCE). Pages behind these count as not there, which costs a refresh
 * and never shows a peer anything. (PAGEMAP_SCAN needs no such bound, but Linux 6.7.)
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/present.h"
#include "mr/demand/present.h"
#include "mr/space.h"

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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/lock.h"
#include "base/page.h"
#include "base/present.h"
#include "mr/access.h"
#include "mr/demand/around.h"
#include "mr/demand/backs.h"

/*
 * Adds to the blocks with the hole the pages around them that have memory. The kernel
 * allocates pages without memory, so not more of these are added than there are pages
 * with memory right before: a peer that writes from the beginning to the end soon gets
 * whole windows, and a peer that reads here and there no more than blocks.
 */
static struct mrf_hole with_what_is_there(struct mrf_hole hole)
{
	uint64_t block = MRF_PIN_BLOCK - 1, window = MRF_PIN_WINDOW - 1;
	uint64_t last = (hole.end - 1) | block, first = hole.start & ~block;
	uint64_t high = mrf_min(hole.high - 1, (hole.end - 1) | window);

	/* Looks below the watched range, too, which is a mapping of its own. */
	hole.first = mrf_present_down(first, hole.extent->addr);
	last += first - hole.first;
	hole.last = last < high ? mrf_present_up(last + 1, high) : high + 1;
	return hole;
}

enum mrf_pinned mrf_pin_around(struct mrf_mr_back *back, const struct mrf_hole *hole, int *err)
{
	uint64_t grain, page = back->space->page_mask + 1;
	struct mrf_hole wide = with_what_is_there(*hole);
	enum mrf_pinned ret = MRF_PIN_UNWATCHED;

	for (grain = MRF_PIN_WINDOW; ret == MRF_PIN_UNWATCHED && grain > page; grain /= 4)
		ret = mrf_pin_keep(back, &wide, grain, err);
	return ret;
}

/* --- without a look at the mappings -------------------------------------------------- */

/*
 * May the memory be accessed so? Its pages get memory, as the pin gives it. A page that
 * peers write also gets what the kernel needs to join the pieces of a mapping again
 * (monitor/monitor.c), before the mapping is cut. In each part that is proved to be one
 * mapping, one page speaks for all.
 */
static bool hole_allows(const struct mrf_mr_back *back, const struct mrf_hole *hole)
{
	bool write = back->rights & MRF_RIGHTS_WRITE;
	uint64_t addr = hole->start;

	while (addr < hole->end) {
		if (mrf_page_fault_in(addr, write))
			return false;
		addr = (addr | (MRF_MONITOR_PART - 1)) + 1;
		if (!addr)
			break;
	}
	return true;
}

/* How much would be watched with this grain? */
static uint64_t width(const struct mrf_hole *hole, uint64_t grain)
{
	uint64_t high = (hole->end - 1) | (grain - 1), low = hole->start & ~(grain - 1);

	return mrf_min(hole->high - 1, high) - mrf_max(hole->low, low);
}

/* A window that ends in another mapping, or holds a page that cannot be watched, is too wide. */
static bool keep_what_fits(struct mrf_mr_back *back, const struct mrf_hole *hole)
{
	uint64_t grain, page = back->space->page_mask + 1, tried = UINT64_MAX;
	enum mrf_pinned ret = MRF_PIN_AGAIN;
	int err;

	for (grain = MRF_PIN_WINDOW; grain >= page; grain /= 4) {
		if (width(hole, grain) == tried)
			continue;
		tried = width(hole, grain);
		ret = mrf_pin_keep(back, hole, grain, &err);
		if (ret == MRF_PINNED || ret == MRF_PIN_FAILED)
			break;
	}
	return ret == MRF_PINNED;
}

bool mrf_pin_quick(struct mrf_mr_back *back, const struct mrf_hole *hole)
{
	struct mrf_hole wide;

	mrf_slow_call();
	if (!mrf_mr_backs_monitored(back->space->backs) || !mrf_monitor_proves() ||
	    !mrf_monitor_has_room() || !hole_allows(back, hole))
		return false;
	wide = with_what_is_there(*hole);
	return keep_what_fits(back, &wide);
}

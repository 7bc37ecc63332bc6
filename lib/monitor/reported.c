/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching by userfaultfd splits mappings: the kernel does not keep watched pages and others in one
 * mapping, and mremap moves one mapping at a time. It fails with EFAULT across the edge of what is
 * watched, unless a hook comes first, which ends the watch; then the kernel joins the pieces again
 * (pieces.h).
 *
 * Registered memory stays registered, as ground. Ground goes when its memory changes, as
 * watches do, by the same rules: a hook takes exactly its range out before the call, and
 * an event when it is read. For a watch that begins in ground, everything that a registration
 * proves (mrf_uffd_verify) has been proved before, except that no change is under way whose
 * event has not been read. The kernel is asked that (mrf_uffd_quiet). Any change that begins
 * later meets the watch.
 */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "monitor/discard.h"
#include "monitor/ground.h"
#include "monitor/hooks.h"
#include "monitor/uffd.h"
#include "monitor/reported.h"
#include "monitor/monitor_state.h"
#include "monitor/watches.h"

#define GRID ((uintptr_t)64 << 10) /* MRF_GROUND_GRID */

static struct mrf_discards discards;
static bool any_ground; /* there may be some in the table */

/* The lowest part of [start, end), in one chunk, that a watch or ground needs registered. */
static bool first_needed_locked(uintptr_t start, uintptr_t end, struct mrf_ground *needed)
{
	const struct mrf_watch *watch = mrf_watches_first_locked(start, end);
	bool any = mrf_ground_first(start, end, needed);

	if (!watch || (any && needed->start <= watch->start))
		return any;
	*needed = (struct mrf_ground){ .start = watch->start, .end = mrf_watch_end(watch) };
	return true;
}

static void release_piece_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground needed;
	uintptr_t next;
	bool any;

	while (start < end) {
		any = first_needed_locked(start, end, &needed);
		next = any ? mrf_max(needed.start, start) : end;
		mrf_uffd_remove(start, next);
		start = any ? needed.end : end;
	}
}

void mrf_reported_release_locked(uintptr_t start, uintptr_t end)
{
	uintptr_t next;

	mrf_monitor_held();
	if (!mrf_monitor_parts.uffd || !mrf_monitor_usable())
		return;
	for (; start < end; start = next) {
		next = mrf_chunk_end(start, end);
		release_piece_locked(start, next);
	}
}

/* A discarded range is registered again after a while, to hear when it is unmapped. */
static void arm_discard_locked(struct mrf_discard *entry)
{
	uintptr_t end;

	if (entry->armed || (uint64_t)mrf_now_ms() - entry->at < MRF_DISCARD_MS)
		return;
	entry->armed = !mrf_uffd_add(entry->start, entry->end, &end);
}

/* If the set is full, removes ground of it that has no watch. False: all has. */
static bool make_place_locked(uintptr_t addr)
{
	struct mrf_ground old;
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (!mrf_ground_in_set(addr, i, &old))
			return true;
	}
	while (i--) {
		if (!mrf_ground_in_set(addr, i, &old) ||
		    mrf_watches_first_locked(old.start, old.end))
			continue;
		mrf_ground_remove(&old);
		mrf_reported_release_locked(old.start, old.end);
		return true;
	}
	return false;
}

/* Takes the ground inside a range out of the table. */
static void absorb_locked(const struct mrf_ground *range)
{
	struct mrf_ground other;
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (mrf_ground_in_set(range->start, i, &other) && other.start >= range->start &&
		    other.end <= range->end &&
		    (other.start != range->start || other.end != range->end))
			mrf_ground_remove(&other);
	}
}

/*
 * The ground is in the table before calls of hooks are looked for. -FI_ENOSPC: there is no room
 * for it, or such a call is under way; other errors as mrf_uffd_add.
 */
static int make_ground_locked(const struct mrf_ground *range)
{
	uintptr_t end = range->start;
	int ret = -FI_ENOSPC;

	mrf_monitor_held();
	if (mrf_discard_find(&discards, range->start, range->end))
		return -FI_EINVAL;
	any_ground = true;
	if (!make_place_locked(range->start) || !mrf_ground_add(range))
		return -FI_ENOSPC;
	if (!mrf_monitor_parts.hooks || mrf_hooks_quiet(range->start, range->end))
		ret = mrf_uffd_join(range->start, range->end, &end);
	if (!ret) {
		absorb_locked(range);
		return 0;
	}
	mrf_ground_remove(range);
	mrf_reported_release_locked(range->start, end);
	return ret;
}

/* Widens a range over all ground of its chunk. False: the chunk has none. */
static bool hull_locked(struct mrf_ground *hull)
{
	uintptr_t chunk = hull->start & ~(MRF_CHUNK - 1);
	struct mrf_ground other;
	bool any = false;
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (!mrf_ground_in_set(chunk, i, &other) ||
		    (other.start & ~(MRF_CHUNK - 1)) != chunk)
			continue;
		hull->start = mrf_min(hull->start, other.start);
		hull->end = mrf_max(hull->end, other.end);
		hull->step = mrf_max(hull->step, other.step);
		any = true;
	}
	return any;
}

static struct mrf_ground ground_widened(const struct mrf_ground *hull, enum mrf_ground_step step)
{
	uintptr_t grain = step == MRF_GROUND_CHUNK ? MRF_CHUNK : GRID;
	struct mrf_ground wide = *hull;

	wide.step = step;
	if (step > MRF_GROUND_GRID)
		return wide;
	wide.start &= ~(grain - 1);
	wide.end = ((wide.end - 1) | (grain - 1)) + 1;
	return wide;
}

/*
 * Makes [start, end), in one chunk, ground; and memory around it, too, if the chunk has ground
 * already. Errors as make_ground_locked.
 */
static int make_widest_ground_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground hull = { .start = start, .end = end }, exact = hull, wide;
	int ret;

	if (!hull_locked(&hull))
		return make_ground_locked(&exact);
	for (; hull.step < MRF_GROUND_EXACT; hull.step++) {
		wide = ground_widened(&hull, hull.step);
		ret = make_ground_locked(&wide);
		if (!ret || ret == -FI_ENOSPC)
			return ret;
	}
	exact.step = hull.step;
	return make_ground_locked(&exact);
}

/* Has changes of [start, end), in one chunk, reported: as ground if possible. */
static int report_piece_locked(struct mrf_watch *watch, uintptr_t start, uintptr_t end,
			       uintptr_t *end_of_all)
{
	int ret;

	if (mrf_ground_has(start, end))
		return mrf_uffd_quiet() ? 0 : -FI_EAGAIN;
	ret = make_widest_ground_locked(start, end);
	if (ret != -FI_ENOSPC)
		return ret;
	mrf_watches_alone_locked(watch);
	return mrf_uffd_add(start, end, end_of_all);
}

/* Unregisters ground that is lost without a change, except for the watches in it. */
static void strand_locked(const struct mrf_ground *lost)
{
	struct mrf_watch *watch = mrf_watches_first_locked(lost->start, lost->end);

	for (; watch; watch = mrf_watches_next_locked(watch, lost->start, lost->end))
		mrf_watches_alone_locked(watch);
	mrf_reported_release_locked(lost->start, lost->end);
}

/*
 * Ground that reaches beyond the change stays for the watches in it. If it has none, it goes, so
 * that the mapping can be whole again.
 */
void mrf_reported_change_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground range, lost;
	unsigned at = 0;

	mrf_monitor_held();
	mrf_watches_lose_ground_locked();
	while (mrf_ground_next(start, end, &at, &range)) {
		if (!mrf_watches_first_locked(range.start, range.end)) {
			mrf_ground_remove(&range);
			mrf_reported_release_locked(range.start, range.end);
			continue;
		}
		mrf_uffd_remove(mrf_max(start, range.start), mrf_min(end, range.end));
		if (mrf_ground_cut(&range, start, end, &lost))
			strand_locked(&lost);
	}
	mrf_watches_lost_ground_locked();
}

void mrf_reported_trim_locked(void)
{
	struct mrf_ground range;
	unsigned at = 0;

	mrf_monitor_held();
	while (mrf_ground_next(0, UINTPTR_MAX, &at, &range)) {
		if (mrf_watches_first_locked(range.start, range.end))
			continue;
		mrf_ground_remove(&range);
		mrf_reported_release_locked(range.start, range.end);
	}
}

int mrf_reported_add_locked(struct mrf_watch *watch, uintptr_t *upto)
{
	uintptr_t start = watch->start, end = mrf_watch_end(watch), next;
	int ret = 0;

	mrf_monitor_held();
	*upto = start;
	for (; !ret && start < end; start = next) {
		next = mrf_chunk_end(start, end);
		ret = report_piece_locked(watch, start, next, upto);
		*upto = ret ? *upto : next;
	}
	return ret;
}

void mrf_reported_event_locked(const struct mrf_uffd_event *event)
{
	uint64_t now = (uint64_t)mrf_now_ms();

	mrf_monitor_held();
	mrf_reported_change_locked(event->start, event->end);
	switch (event->kind) {
	case MRF_UFFD_REMOVE:
		mrf_discard_add(&discards, event->start, event->end, now);
		break;
	case MRF_UFFD_UNMAP:
		mrf_discard_unmapped(&discards, event->start, event->end, now);
		break;
	default:
		break;
	}
}

bool mrf_reported_discarded_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_discard *entry = mrf_discard_find(&discards, start, end);

	mrf_monitor_held();
	if (entry)
		arm_discard_locked(entry);
	return entry;
}

void mrf_reported_end_locked(void)
{
	struct mrf_watch *watch = mrf_watches_first_locked(0, UINTPTR_MAX);
	struct mrf_ground range;
	unsigned i = 0;

	mrf_monitor_held();
	for (; watch; watch = mrf_watches_next_locked(watch, 0, UINTPTR_MAX))
		mrf_uffd_remove(watch->start, mrf_watch_end(watch));
	while (mrf_ground_next(0, UINTPTR_MAX, &i, &range)) {
		mrf_uffd_remove(range.start, range.end);
		mrf_ground_remove(&range);
	}
	for (i = 0; i < discards.count; i++) {
		struct mrf_discard *entry = &discards.entry[i];

		if (entry->armed)
			mrf_uffd_remove(entry->start, entry->end);
		entry->armed = false;
	}
}

void mrf_reported_clear(void)
{
	if (any_ground)
		mrf_ground_clear();
	any_ground = false;
	memset(&discards, 0, sizeof(discards));
}

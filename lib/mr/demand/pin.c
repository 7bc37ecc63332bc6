/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/page.h"
#include "mr/access.h"
#include "mr/class.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/demand/pin.h"
#include "mr/demand/spans.h"
#include "mr/demand/unpin.h"
#include "mr/space.h"

struct mrf_pin *mrf_pin_find_locked(const struct mrf_mr_back *back, uint64_t pos)
{
	mrf_monitor_held();
	return mrf_pin_first_locked(back, pos, pos + 1);
}

/* --- how far ---------------------------------------------------------------------- */

static void narrow_range(uint64_t *low, uint64_t *high, uint64_t min, uint64_t max)
{
	*low = mrf_max(*low, min);
	*high = mrf_min(*high, max);
}

/*
 * Narrows the range to the gap between the pins before and behind the hole. False: some
 * of the hole is pinned.
 */
static bool bound_by_pins_locked(const struct mrf_mr_back *back, const struct mrf_hole *hole,
				 uint64_t *low, uint64_t *high)
{
	uint64_t first = hole->extent->pos, base = hole->extent->addr - first;
	uint64_t pos = hole->start - base, end = hole->end - base;
	const struct mrf_itree_node *before = mrf_itree_below(&back->pins, pos);
	const struct mrf_pin *behind = mrf_pin_first_locked(back, pos, UINT64_MAX);

	if (behind && behind->pos < end)
		return false;
	if (behind && behind->pos - first < hole->extent->len)
		*high = mrf_min(*high, behind->pos + base);
	if (before && mrf_itree_start(before) >= first)
		*low = mrf_max(*low, mrf_itree_end(before) + base);
	return true;
}

static bool bound_by_refresh_locked(const struct mrf_mr_back *back, const struct mrf_hole *hole,
				    uint64_t *low, uint64_t *high)
{
	const struct mrf_span *span;

	if (!back->notify)
		return true;
	span = mrf_spans_at(&back->master->refreshed, hole->start);
	if (!span || span->end < hole->end)
		return false;
	narrow_range(low, high, span->start, span->end);
	return true;
}

static uint64_t round_up(uint64_t addr, uint64_t grain)
{
	return addr > UINT64_MAX - (grain - 1) ? UINT64_MAX : (addr + grain - 1) & ~(grain - 1);
}

static void place_pin(struct mrf_pin *pin, const struct mrf_hole *hole, uint64_t start,
		      uint64_t end)
{
	const struct mrf_mr_space *space = pin->back->space;
	uint64_t mask = space->page_mask;

	pin->addr = start;
	pin->len = end - start;
	pin->pos = start - hole->extent->addr + hole->extent->pos;
	pin->iova = space->mode & FI_MR_VIRT_ADDR ? start : start & mask;
}

static void set_watched(struct mrf_pin *pin, uint64_t start, uint64_t end)
{
	uint64_t mask = pin->back->space->page_mask;

	pin->watch.start = start & ~mask;
	pin->watch.len = round_up(end, mask + 1) - pin->watch.start;
}

/* Decides which bytes the pin covers. False: none, and *result says why. */
static bool fit_locked(struct mrf_pin *pin, const struct mrf_hole *hole, uint64_t grain,
		       enum mrf_pinned *result)
{
	const struct mrf_mr_back *back = pin->back;
	uint64_t low = hole->low, high = hole->high;

	mrf_monitor_held();
	*result = MRF_PIN_AGAIN;
	if (back->closed || !bound_by_refresh_locked(back, hole, &low, &high))
		return false;
	*result = MRF_PINNED;
	if (!bound_by_pins_locked(back, hole, &low, &high))
		return false;
	narrow_range(&low, &high, hole->start & ~(grain - 1), round_up(hole->end, grain));
	high = low + mrf_vmr_cut(low, high - low);
	set_watched(pin, low, high);
	narrow_range(&low, &high, hole->first, hole->last);
	place_pin(pin, hole, low, high);
	return true;
}

/* --- pinning ---------------------------------------------------------------------- */

static struct mrf_pin *pin_new(struct mrf_mr_back *back)
{
	struct mrf_pin *pin = calloc(1, sizeof(*pin));

	if (!pin)
		return NULL;
	pin->back = back;
	mrf_list_init(&pin->node);
	mrf_list_init(&pin->lease);
	mrf_list_init(&pin->all);
	return pin;
}

static int prepare_kept(struct mrf_pin *pin)
{
	struct mrf_mr_back *back = pin->back;

	pin->place = mrf_itree_node_new();
	if (!pin->place)
		return -FI_ENOMEM;
	return back->notify ? 0 : mrf_watch_init(&pin->watch, &back->space->backs->client);
}

/* One that can be kept and watched. */
static struct mrf_pin *kept_pin_new(struct mrf_mr_back *back)
{
	struct mrf_pin *pin = pin_new(back);

	if (pin && prepare_kept(pin)) {
		mrf_pin_free(pin);
		return NULL;
	}
	return pin;
}

static int reg_pin(struct mrf_pin *pin)
{
	const struct mrf_mr_back *back = pin->back;

	return mrf_vmr_reg(mrf_mr_class_pd(back->space, back->class),
			   (const void *)(uintptr_t)pin->addr, pin->len, pin->iova, back->rights,
			   &pin->vmr);
}

static bool watch_pin_locked(struct mrf_pin *pin, enum mrf_pinned *result)
{
	int ret = pin->back->notify ? 0 : mrf_monitor_watch_locked(&pin->watch);

	mrf_monitor_held();
	*result = ret == -FI_EAGAIN ? MRF_PIN_AGAIN : MRF_PIN_UNWATCHED;
	return !ret;
}

static bool unchanged_locked(const struct mrf_pin *pin)
{
	mrf_monitor_held();
	return pin->back->notify || mrf_watch_on(&pin->watch);
}

/* Is none of its bytes in another pin? */
static bool fits_still_locked(const struct mrf_pin *pin)
{
	mrf_monitor_held();
	return !mrf_pin_first_locked(pin->back, pin->pos, pin->pos + pin->len);
}

static void insert_locked(struct mrf_pin *pin)
{
	mrf_monitor_held();
	mrf_itree_insert(&pin->back->pins, pin->place, pin->pos, pin->pos + pin->len, pin);
	mrf_list_add_tail(&pin->all, &pin->back->space->backs->pins);
}

/* False: the pin is not to be made, *result says why. */
static bool prepare_pin(struct mrf_pin *pin, const struct mrf_hole *hole, uint64_t grain,
			enum mrf_pinned *result)
{
	bool ok;

	mrf_monitor_lock();
	ok = fit_locked(pin, hole, grain, result) && watch_pin_locked(pin, result);
	if (ok)
		mrf_list_add_tail(&pin->node, &pin->back->making);
	mrf_monitor_unlock();
	return ok;
}

/* False: what was pinned is of no use. */
static bool commit_pin(struct mrf_pin *pin, int err)
{
	bool ok;

	mrf_monitor_lock();
	mrf_list_del(&pin->node);
	ok = !err && !pin->stale && unchanged_locked(pin) && fits_still_locked(pin);
	if (ok)
		insert_locked(pin);
	else
		mrf_monitor_unwatch_locked(&pin->watch);
	mrf_monitor_unlock();
	return ok;
}

/* Ends a pin that no other thread knows of. */
static void discard_pin(struct mrf_pin *pin)
{
	struct mrf_list list;

	mrf_list_init(&list);
	mrf_list_add_tail(&pin->node, &list);
	mrf_pins_end(pin->back->space->backs, &list);
}

/* Registers a pin whose range is watched, so that changes are reported from now on. */
static bool reg_watched(struct mrf_pin *pin, int *err)
{
	bool same = pin->back->notify || mrf_monitor_sure(&pin->watch);

	*err = same ? reg_pin(pin) : 0;
	return commit_pin(pin, same ? *err : -FI_EAGAIN);
}

enum mrf_pinned mrf_pin_keep(struct mrf_mr_back *back, const struct mrf_hole *hole, uint64_t grain,
			     int *err)
{
	struct mrf_pin *pin = kept_pin_new(back);
	enum mrf_pinned result;

	*err = -FI_ENOMEM;
	if (!pin)
		return MRF_PIN_FAILED;
	if (prepare_pin(pin, hole, grain, &result)) {
		if (reg_watched(pin, err))
			return MRF_PINNED;
		result = *err ? MRF_PIN_FAILED : MRF_PIN_AGAIN;
	}
	discard_pin(pin);
	return result;
}

static bool commit_lease(struct mrf_pin *pin, struct mrf_mr_lease *lease, int err)
{
	bool ok;

	mrf_monitor_lock();
	mrf_list_del(&pin->node);
	ok = !err && !pin->stale;
	if (ok) {
		mrf_mr_back_get(pin->back);
		mrf_list_add_tail(&pin->node, &pin->back->leased);
		mrf_list_add_tail(&pin->lease, &lease->pins);
		lease->npins++;
	}
	mrf_monitor_unlock();
	return ok;
}

enum mrf_pinned mrf_pin_lease(struct mrf_mr_back *back, const struct mrf_hole *hole,
			      struct mrf_mr_lease *lease, struct mrf_pin **out, int *err)
{
	struct mrf_pin *pin = pin_new(back);
	uint64_t page = back->space->page_mask + 1, low, high;

	*err = lease->npins < MRF_MR_LEASE_PINS ? -FI_ENOMEM : -FI_ENOSPC;
	if (!pin || *err == -FI_ENOSPC) {
		mrf_pin_free(pin);
		return MRF_PIN_FAILED;
	}
	low = mrf_max(hole->low, hole->start & ~(page - 1));
	high = mrf_min(hole->high, round_up(hole->end, page));
	place_pin(pin, hole, low, low + mrf_vmr_cut(low, high - low));
	mrf_monitor_lock();
	pin->clock = back->clock;
	pin->stale = back->closed;
	mrf_list_add_tail(&pin->node, &back->making);
	mrf_monitor_unlock();
	*err = reg_pin(pin);
	*out = pin;
	if (commit_lease(pin, lease, *err))
		return MRF_PINNED;
	discard_pin(pin);
	return *err ? MRF_PIN_FAILED : MRF_PIN_AGAIN;
}

/* --- for others than regions ------------------------------------------------------ */

static void end_dead(struct mrf_pin *pin, struct mrf_list *dead)
{
	if (mrf_unlikely(!mrf_list_empty(dead)))
		(void)mrf_pins_end(pin->back->space->backs, dead);
}

/*
 * Where nothing was watched before, the first page says whether the memory may be accessed
 * so, and is brought in before the mapping is cut, for the kernel to join the pieces again.
 * False: nothing can be watched.
 */
static bool prepare_local_locked(struct mrf_pin *pin, unsigned rights, struct mrf_list *dead,
				 int *err)
{
	bool room;

	mrf_monitor_unlock();
	end_dead(pin, dead);
	room = mrf_monitor_has_room();
	*err = room ? mrf_page_fault_in(pin->addr, rights & MRF_RIGHTS_WRITE) : 0;
	mrf_monitor_lock();
	return room;
}

/* False: the memory is of another kind. */
static bool reg_local(struct mrf_pin *pin, unsigned rights, int *err)
{
	if (*err)
		return true;
	if (!mrf_monitor_sure(&pin->watch))
		return false;
	*err = mrf_vmr_reg(pin->back->space->pd, (void *)(uintptr_t)pin->addr, pin->len, pin->addr,
			   rights, &pin->vmr);
	return true;
}

/* In ground that is brief. */
static bool make_local_locked(struct mrf_pin *pin, unsigned rights, struct mrf_list *dead, int *err)
{
	struct mrf_monitor_pause pause;
	bool sure;

	mrf_monitor_pause_locked(&pause);
	end_dead(pin, dead);
	sure = reg_local(pin, rights, err);
	mrf_monitor_resume(&pause);
	return sure;
}

static bool make_local_long_locked(struct mrf_pin *pin, unsigned rights, int *err)
{
	bool sure;

	mrf_monitor_unlock();
	sure = reg_local(pin, rights, err);
	mrf_monitor_lock();
	return sure;
}

/* The memory has changed meanwhile, is of another kind, or was not registered. */
static void undo_local_locked(struct mrf_pin *pin, bool registered)
{
	mrf_monitor_unwatch_locked(&pin->watch);
	if (!registered)
		return;
	mrf_monitor_unlock();
	(void)mrf_vmr_dereg(&pin->vmr);
	mrf_monitor_lock();
}

static enum mrf_pinned pin_local_locked(struct mrf_pin *pin, unsigned rights, struct mrf_list *dead,
					int *err)
{
	bool stands, sure;
	int ret;

	set_watched(pin, pin->addr, pin->addr + pin->len);
	stands = mrf_monitor_stands_locked(&pin->watch);
	*err = 0;
	if (!stands && !prepare_local_locked(pin, rights, dead, err))
		return MRF_PIN_UNWATCHED;
	ret = mrf_monitor_watch_locked(&pin->watch);
	if (ret) {
		*err = 0;
		return ret == -FI_EAGAIN ? MRF_PIN_AGAIN : MRF_PIN_UNWATCHED;
	}
	sure = stands ? make_local_locked(pin, rights, dead, err)
		      : make_local_long_locked(pin, rights, err);
	if (mrf_likely(sure && !*err && unchanged_locked(pin))) {
		mrf_list_add_tail(&pin->all, &pin->back->space->backs->locals);
		pin->owner->kept_locked(pin);
		return MRF_PINNED;
	}
	undo_local_locked(pin, sure && !*err);
	if (!sure)
		return MRF_PIN_UNWATCHED;
	return *err ? MRF_PIN_FAILED : MRF_PIN_AGAIN;
}

enum mrf_pinned mrf_pin_local_locked(struct mrf_pin *pin, unsigned rights, int *err)
{
	struct mrf_mr_backs *backs = pin->back->space->backs;
	enum mrf_pinned ret;
	struct mrf_list dead;

	mrf_pins_take_dead_locked(backs, &dead);
	ret = pin_local_locked(pin, rights, &dead, err);
	mrf_pins_put_dead_locked(backs, &dead);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How pins end. No pin may outlive a change of the memory behind it: as soon as the
 * kernel has taken an address back, another thread may map it again and use it. So what
 * is pinned is let go before the call that makes the change, and nothing may be pinned
 * there until it has returned (monitor/monitor.c). Nothing is watched while pins are
 * dropped, and no memory is given back to the allocator, whose lock the waiting thread
 * may hold: the kernel MR is destroyed (mrf_vmr_revoke), and what libibverbs keeps of it
 * is freed later.
 *
 * Peers are told by FORGET, and ask again when they next need something. A peer that was
 * not told in time is refused by the kernel and asks again. It goes on from the first
 * byte that was not acknowledged: an access in flight while pages move may have reached
 * the old pages with what was acknowledged before they moved, or with all of it if its
 * pin was made before. An access that begins after the change reaches only the new ones.
 *
 * Leases serve memory that cannot be watched: files and shared mappings (which can be
 * truncated without an event), pages discarded around the hooks, and everything where
 * hooks or userfaultfd cannot be had, or FI_MR_CACHE_MONITOR=disabled. A leased pin is made for
 * the accesses that a peer has already begun and is given back when they are done
 * (RELEASE, or the end of the connection). A page that is pinned after an access began is
 * not an old one. A lease costs a question and a registration per batch of accesses.
 */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/demand/gone.h"
#include "mr/demand/pin.h"
#include "mr/demand/spans.h"
#include "mr/demand/unpin.h"

void mrf_pin_free(struct mrf_pin *pin)
{
	if (!pin)
		return;
	mrf_itree_node_free(pin->place);
	mrf_watch_fini(&pin->watch);
	free(pin);
}

static bool meets(const struct mrf_pin *pin, const struct mrf_spans *where)
{
	return !where || mrf_spans_meet(where, pin->addr, pin->addr + pin->len);
}

/* --- kept ------------------------------------------------------------------------- */

static void take_pin_locked(struct mrf_pin *pin, struct mrf_list *list)
{
	mrf_monitor_unwatch_locked(&pin->watch);
	/*
	 * Revoked at once: a thread that looks for the pin from now on finds none, and
	 * relies on that.
	 */
	pin->revoked = !mrf_vmr_revoke(&pin->vmr);
	mrf_list_del(&pin->all);
	mrf_itree_remove(&pin->back->pins, pin->place);
	/* Of a closed region peers are told when they ask. */
	if (!pin->back->closed)
		mrf_gone_note_locked(pin);
	mrf_list_add_tail(&pin->node, list);
}

void mrf_pins_spoil_locked(struct mrf_mr_back *back, const struct mrf_spans *where)
{
	mrf_monitor_held();
	mrf_list_each (node, &back->making) {
		if (meets(mrf_pin_at(node), where))
			mrf_pin_at(node)->stale = true;
	}
}

void mrf_pins_take_locked(struct mrf_mr_back *back, const struct mrf_spans *where,
			  struct mrf_list *list)
{
	struct mrf_itree_node *node = mrf_itree_first(&back->pins, 0, UINT64_MAX), *next;

	mrf_monitor_held();
	for (; node; node = next) {
		next = mrf_itree_next(&back->pins, node, 0, UINT64_MAX);
		if (meets(mrf_itree_value(node), where))
			take_pin_locked(mrf_itree_value(node), list);
	}
}

void mrf_pin_revoke_locked(struct mrf_pin *pin)
{
	mrf_monitor_held();
	pin->revoked = !mrf_vmr_revoke(&pin->vmr);
	mrf_list_add_tail(&pin->all, &pin->back->space->backs->dead);
}

void mrf_pin_drop_locked(struct mrf_pin *pin, bool changed)
{
	mrf_monitor_held();
	mrf_monitor_unwatch_locked(&pin->watch);
	mrf_list_del(&pin->all);
	if (pin->place) {
		mrf_itree_remove(&pin->back->pins, pin->place);
		mrf_gone_note_locked(pin);
	}
	if (!pin->owner || pin->owner->ended_locked(pin, changed))
		mrf_pin_revoke_locked(pin);
}

static void drop_list_locked(struct mrf_list *pins)
{
	while (!mrf_list_empty(pins))
		mrf_pin_drop_locked(mrf_list_entry(pins->next, struct mrf_pin, all), false);
}

bool mrf_pins_drop_all_locked(struct mrf_mr_backs *backs)
{
	bool any = !mrf_list_empty(&backs->pins) || !mrf_list_empty(&backs->locals);

	mrf_monitor_held();
	drop_list_locked(&backs->pins);
	drop_list_locked(&backs->locals);
	return any;
}

static int end_pin(struct mrf_pin *pin)
{
	int ret;

	if (pin->revoked) {
		mrf_vmr_free(&pin->vmr);
		return 0;
	}
	ret = mrf_vmr_dereg(&pin->vmr);
	if (mrf_unlikely(ret))
		mrf_refuse(-ret, FI_LOG_MR, 3030, "%#lx + %lu byte%s: the kernel keeps the region",
			   pin->addr, pin->len, MRF_S(pin->len));
	return ret;
}

static void give_pin(struct mrf_pin *pin)
{
	if (pin->owner)
		pin->owner->free(pin);
	else
		mrf_pin_free(pin);
}

static void keep_dead(struct mrf_mr_backs *backs, struct mrf_pin *pin)
{
	mrf_monitor_lock();
	mrf_list_add_tail(&pin->all, &backs->dead);
	mrf_monitor_unlock();
}

int mrf_pins_end(struct mrf_mr_backs *backs, struct mrf_list *list)
{
	struct mrf_list *node;
	int first = 0, ret;

	while ((node = mrf_list_pop(list))) {
		ret = end_pin(mrf_pin_at(node));
		if (mrf_likely(!ret))
			give_pin(mrf_pin_at(node));
		else
			keep_dead(backs, mrf_pin_at(node));
		first = first ? first : ret;
	}
	return first;
}

void mrf_pins_take_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *list)
{
	struct mrf_list *node;

	mrf_monitor_held();
	mrf_list_init(list);
	while ((node = mrf_list_pop(&backs->dead)))
		mrf_list_add_tail(&mrf_list_entry(node, struct mrf_pin, all)->node, list);
}

void mrf_pins_put_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *list)
{
	struct mrf_list *node;

	mrf_monitor_held();
	while ((node = mrf_list_pop(list)))
		mrf_list_add_tail(&mrf_pin_at(node)->all, &backs->dead);
}

int mrf_pins_reap(struct mrf_mr_backs *backs)
{
	struct mrf_list list;

	mrf_monitor_lock();
	mrf_pins_take_dead_locked(backs, &list);
	mrf_monitor_unlock();
	return mrf_pins_end(backs, &list);
}

/* --- leased ----------------------------------------------------------------------- */

static void take_leased_locked(struct mrf_mr_back *back, const struct mrf_spans *where,
			       uint64_t clock, struct mrf_list *list)
{
	mrf_monitor_held();
	mrf_list_each_safe (node, &back->leased) {
		struct mrf_pin *pin = mrf_pin_at(node);

		if (pin->clock >= clock || !meets(pin, where))
			continue;
		pin->busy = true;
		mrf_list_del(node);
		mrf_list_add_tail(node, list);
	}
}

/*
 * The lease may have ended meanwhile and left the rest to this thread. Pins that the
 * kernel keeps go into kept.
 */
static void end_orphan(struct mrf_pin *pin, int ret, struct mrf_list *kept)
{
	struct mrf_mr_back *back = pin->back;
	bool orphan;

	mrf_monitor_lock();
	pin->busy = false;
	orphan = pin->orphan;
	if (mrf_unlikely(ret && orphan))
		mrf_list_add_tail(&pin->all, &back->space->backs->dead);
	else if (mrf_unlikely(ret))
		mrf_list_add_tail(&pin->node, kept);
	mrf_monitor_unlock();
	if (!orphan)
		return;
	if (!ret)
		mrf_pin_free(pin);
	mrf_mr_back_put(back);
}

int mrf_pins_end_leased(struct mrf_mr_back *back, const struct mrf_spans *where, uint64_t clock)
{
	struct mrf_list mine, kept, *node;
	int first = 0, ret;

	mrf_list_init(&mine);
	mrf_list_init(&kept);
	mrf_monitor_lock();
	take_leased_locked(back, where, clock, &mine);
	mrf_monitor_unlock();
	while ((node = mrf_list_pop(&mine))) {
		ret = end_pin(mrf_pin_at(node));
		first = first ? first : ret;
		end_orphan(mrf_pin_at(node), ret, &kept);
	}
	if (mrf_likely(mrf_list_empty(&kept)))
		return first;
	mrf_monitor_lock();
	while ((node = mrf_list_pop(&kept)))
		mrf_list_add_tail(node, &back->leased);
	mrf_monitor_unlock();
	return first;
}

void mrf_mr_lease_init(struct mrf_mr_lease *lease)
{
	mrf_list_init(&lease->pins);
	lease->npins = 0;
}

/* False: another thread is unpinning it and will free it. */
static bool leave_region(struct mrf_pin *pin)
{
	bool mine;

	mrf_monitor_lock();
	mine = !pin->busy;
	/*
	 * A thread that closes the region now finds no pin of it, so none must be left.
	 */
	if (mine && pin->vmr.handle && !pin->revoked)
		pin->revoked = !mrf_vmr_revoke(&pin->vmr);
	pin->orphan = true;
	if (mine)
		mrf_list_del(&pin->node);
	mrf_monitor_unlock();
	return mine;
}

void mrf_mr_lease_end(struct mrf_mr_lease *lease)
{
	struct mrf_list list, *node;

	lease->npins = 0;
	while ((node = mrf_list_pop(&lease->pins))) {
		struct mrf_pin *pin = mrf_list_entry(node, struct mrf_pin, lease);
		struct mrf_mr_back *back = pin->back;

		if (!leave_region(pin))
			continue;
		mrf_list_init(&list);
		mrf_list_add_tail(&pin->node, &list);
		mrf_pins_end(back->space->backs, &list);
		mrf_mr_back_put(back);
	}
}

/* --- all of a region -------------------------------------------------------------- */

int mrf_mr_back_close(struct mrf_mr_back *back)
{
	struct mrf_mr_backs *backs = back->space->backs;
	struct mrf_list list;
	int ret, more;

	mrf_list_init(&list);
	mrf_monitor_lock();
	back->closed = true;
	back->clock++;
	mrf_pins_spoil_locked(back, NULL);
	mrf_pins_take_locked(back, NULL, &list);
	mrf_monitor_unlock();
	ret = mrf_pins_end(backs, &list);
	more = mrf_pins_end_leased(back, NULL, UINT64_MAX);
	if (mrf_likely(!ret && !more))
		return mrf_pins_reap(backs);
	return ret ? ret : more;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making room: pins for peers give way (backs.h). Locked memory and regions of the device are
 * limited for the process, while peers decide how much is pinned on demand. So when a
 * registration fails for want of them, all kept pins of all domains are dropped, as a change of
 * the memory would drop them, and it is tried once more. Nothing is freed then, because the
 * caller may hold locks; the next question does that, or closing. Leased pins stay, and so do
 * the pins that the same answer already shows: a peer that asks for more than there is room for
 * is told of the first part and asks again.
 */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/fork.h"
#include "base/maps.h"
#include "base/page.h"
#include "mr/demand/backs.h"
#include "mr/demand/pin.h"
#include "mr/demand/unpin.h"
#include "mr/space.h"

/* Both guarded by the monitor's lock. */
static struct mrf_list all; /* struct mrf_mr_backs.node */
static uint64_t owner;	    /* the process that made this list; in another one it is void */

/* A child forgets its parent's backs: it must not end the pins that they keep. */
static void room_enter(struct mrf_mr_backs *backs)
{
	mrf_monitor_lock();
	if (owner != backs->space->owner)
		mrf_list_init(&all);
	owner = backs->space->owner;
	mrf_list_add_tail(&backs->node, &all);
	mrf_monitor_unlock();
}

static void room_leave(struct mrf_mr_backs *backs)
{
	mrf_monitor_lock();
	mrf_list_del(&backs->node);
	mrf_monitor_unlock();
}

/* --- of a space ------------------------------------------------------------------- */

/*
 * The memory behind a pin is about to change, or has changed. Called by or for the thread
 * that changes it, so no memory is freed. A pin that is
 * being made is found to be no longer watched when it is done.
 */
static void drop_watched_locked(struct mrf_watch *watch)
{
	struct mrf_pin *pin = mrf_container_of(watch, struct mrf_pin, watch);

	mrf_monitor_held();
	if (!mrf_list_empty(&pin->all))
		mrf_pin_drop_locked(pin, true);
}

static void dropped_locked(void *arg)
{
	struct mrf_mr_space *space = ((struct mrf_mr_backs *)arg)->space;

	mrf_monitor_held();
	if (space->dropped)
		space->dropped(space->dropped_arg);
}

struct mrf_mr_backs *mrf_mr_backs_new(struct mrf_mr_space *space)
{
	struct mrf_mr_backs *backs = calloc(1, sizeof(*backs));

	if (!backs)
		return NULL;
	backs->space = space;
	backs->client.drop = drop_watched_locked;
	backs->client.dropped = dropped_locked;
	backs->client.arg = backs;
	backs->local.drop = drop_watched_locked;
	backs->local.local = true;
	mrf_list_init(&backs->pins);
	mrf_list_init(&backs->locals);
	mrf_list_init(&backs->dead);
	mrf_maps_keep();
	room_enter(backs);
	return backs;
}

static void add_clients(struct mrf_mr_backs *backs)
{
	mrf_monitor_add(&backs->client);
	mrf_monitor_add(&backs->local);
}

static void remove_clients(struct mrf_mr_backs *backs)
{
	mrf_monitor_remove(&backs->local);
	mrf_monitor_remove(&backs->client);
}

void mrf_mr_backs_free(struct mrf_mr_backs *backs)
{
	if (!backs)
		return;
	room_leave(backs);
	mrf_maps_let_go();
	if (atomic_load(&backs->monitored))
		remove_clients(backs);
	mrf_pins_reap(backs);
	free(backs);
}

bool mrf_mr_backs_monitored(struct mrf_mr_backs *backs)
{
	if (mrf_unlikely(!atomic_load_explicit(&backs->monitored, memory_order_relaxed)) &&
	    !atomic_exchange(&backs->monitored, true))
		add_clients(backs);
	return mrf_monitor_usable();
}

/* --- room ------------------------------------------------------------------------- */

/* False: there was nothing. */
static bool backs_give_way_locked(struct mrf_mr_backs *backs)
{
	struct mrf_mr_space *space = backs->space;

	mrf_monitor_held();
	if (!mrf_pins_drop_all_locked(backs))
		return false;
	if (space->dropped)
		space->dropped(space->dropped_arg);
	return true;
}

bool mrf_room_helps(int err, size_t len)
{
	struct mrf_page_memlock lock;

	if (err != -FI_ENOMEM && err != -FI_EPERM && err != -FI_ENOSPC)
		return false;
	mrf_page_memlock_read(&lock);
	return lock.exempt || len <= lock.limit;
}

bool mrf_room_make(void)
{
	uint64_t here = mrf_fork_here();
	bool any = false;

	mrf_monitor_lock();
	if (owner == here) {
		mrf_list_each (node, &all)
			any |= backs_give_way_locked(
				mrf_list_entry(node, struct mrf_mr_backs, node));
	}
	mrf_monitor_unlock();
	return any;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fork.h"
#include "mr/demand/pin.h"
#include "mr/demand/backs.h"

/* Both guarded by the monitor's lock. */
static struct mrf_list all; /* struct mrf_mr_backs.node */
static uint64_t owner;	    /* the process whose they are; else all is void */

/* A child does not know its parent's: what they keep is not for it to end. */
void mrf_room_enter(struct mrf_mr_backs *backs)
{
	mrf_monitor_lock();
	if (owner != backs->space->owner)
		mrf_list_init(&all);
	owner = backs->space->owner;
	mrf_list_add_tail(&backs->node, &all);
	mrf_monitor_unlock();
}

void mrf_room_leave(struct mrf_mr_backs *backs)
{
	mrf_monitor_lock();
	mrf_list_del(&backs->node);
	mrf_monitor_unlock();
}

/* Lock held. False: there was nothing. */
static bool give_way(struct mrf_mr_backs *backs)
{
	struct mrf_mr_space *space = backs->space;

	if (!mrf_pins_drop_all(backs))
		return false;
	if (space->dropped)
		space->dropped(space->dropped_arg);
	return true;
}

bool mrf_room_make(void)
{
	uint64_t here = mrf_fork_here();
	bool any = false;

	mrf_monitor_lock();
	if (owner == here) {
		mrf_list_each (node, &all)
			any |= give_way(mrf_list_entry(node, struct mrf_mr_backs, node));
	}
	mrf_monitor_unlock();
	return any;
}

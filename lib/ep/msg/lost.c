/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "ep/model/ep.h"
#include "ep/msg/lost.h"
#include "ep/msg/silent.h"
#include "loop/agent_calls.h"

static struct mrf_inlet *inlet_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_inlet, node);
}

/* The device has taken every slot up to this number. */
static uint64_t taken_upto(const struct mrf_inbox *inbox)
{
	uint64_t most = inbox->ended;

	mrf_list_each (node, &inbox->inlets)
		most = mrf_max(most, inlet_at(node)->last);
	return most;
}

/* A line that may hold the slot with this number, or NULL. */
static struct mrf_inlet *holder_of(const struct mrf_inbox *inbox, uint64_t number)
{
	mrf_list_each (node, &inbox->inlets) {
		if (inlet_at(node)->last < number)
			return inlet_at(node);
	}
	return NULL;
}

static void post_lost_locked(struct mrf_inbox *inbox, uint64_t taken)
{
	uint64_t from = taken;

	mrf_list_each (node, &inbox->inlets)
		from = mrf_min(from, inlet_at(node)->last);
	mrf_shared_post_before(&inbox->slots, from);
}

static void close_silent_locked(struct mrf_inbox *inbox)
{
	mrf_silent_look_locked(inbox);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = inlet_at(node);

		inlet->closing |= mrf_silent(inlet) && inlet->last < inbox->waits;
	}
	mrf_agent_kick(inbox->ep->agent, &inbox->kick);
}

static void look_for_lost_locked(struct mrf_inbox *inbox)
{
	uint64_t taken = taken_upto(inbox);
	unsigned n;

	post_lost_locked(inbox, taken);
	n = mrf_shared_out_before(&inbox->slots, taken, &inbox->waits);
	inbox->holder = n ? holder_of(inbox, inbox->waits) : NULL;
	if (n >= inbox->slots.count / 4)
		close_silent_locked(inbox);
}

void mrf_lost_begin_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	inlet->last = taken_upto(inlet->inbox);
}

void mrf_lost_end_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;

	mrf_lock_held(&inbox->ep->lock);
	inbox->ended = mrf_max(inbox->ended, inlet->last);
	look_for_lost_locked(inbox);
}

void mrf_lost_again_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (mrf_unlikely(inbox->holder && inbox->holder->last > inbox->waits))
		look_for_lost_locked(inbox);
}

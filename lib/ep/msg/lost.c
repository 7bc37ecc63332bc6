/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "ep/model/ep.h"
#include "ep/msg/lost.h"
#include "ep/msg/silent.h"
#include "base/log.h"
#include "contract/budget.h"
#include "loop/agent_calls.h"
#include "verbs/vsrq.h"

static struct mrf_inlet *inlet_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_inlet, node);
}

/* The device has taken every slot up to this number. */
static uint64_t taken_upto(const struct mrf_inbox *inbox)
{
	uint64_t most = inbox->lost.ended;

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

/* Half of the slots may be gone, and nobody can say which. */
static bool may_be_short(const struct mrf_inbox *inbox)
{
	return inbox->lost.unheard >= inbox->slots.count / 2 &&
	       inbox->lost.taken == taken_upto(inbox);
}

static void close_silent_locked(struct mrf_inbox *inbox, bool all)
{
	mrf_silent_look_locked(inbox);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = inlet_at(node);

		inlet->closing |= mrf_silent(inlet) && (all || inlet->last < inbox->lost.waits);
	}
	inbox->lost.again = true;
	mrf_agent_kick(inbox->ep->agent, &inbox->kick);
}

static void look_for_lost_locked(struct mrf_inbox *inbox)
{
	uint64_t taken = taken_upto(inbox);
	unsigned n;

	post_lost_locked(inbox, taken);
	n = mrf_shared_out_before(&inbox->slots, taken, &inbox->lost.waits);
	inbox->lost.holder = n ? holder_of(inbox, inbox->lost.waits) : NULL;
	if (may_be_short(inbox))
		close_silent_locked(inbox, true);
	else if (n >= inbox->slots.count / 4)
		close_silent_locked(inbox, false);
}

void mrf_lost_begin_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	inlet->last = taken_upto(inlet->inbox);
}

/* One more, since whatever came last. */
static void count_unheard(struct mrf_inbox *inbox)
{
	uint64_t taken = taken_upto(inbox);

	if (inbox->lost.taken != taken)
		inbox->lost.unheard = 0;
	inbox->lost.taken = taken;
	inbox->lost.unheard++;
}

void mrf_lost_end_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;

	mrf_lock_held(&inbox->ep->lock);
	inbox->lost.ended = mrf_max(inbox->lost.ended, inlet->last);
	count_unheard(inbox);
	look_for_lost_locked(inbox);
}

void mrf_lost_again_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (inbox->lost.holder && inbox->lost.holder->last > inbox->lost.waits)
		look_for_lost_locked(inbox);
}

/* --- the agent ------------------------------------------------------------------------ */

/* Who is silent is known when it was looked at twice. */
void mrf_lost_later(struct mrf_inbox *inbox)
{
	bool again;

	mrf_lock_take(&inbox->ep->lock);
	again = inbox->lost.again;
	inbox->lost.again = false;
	mrf_lock_release(&inbox->ep->lock);
	if (again && !mrf_timer_runs(&inbox->lost.timer))
		mrf_timer_set(inbox->ep->agent, &inbox->lost.timer, MRF_SILENT_MS);
}

static bool bars_locked(const struct mrf_inbox *inbox)
{
	if (mrf_list_empty(&inbox->inlets) || !may_be_short(inbox))
		return false;
	mrf_list_each (node, &inbox->inlets) {
		if (!inlet_at(node)->closing)
			return false;
	}
	return true;
}

bool mrf_lost_bars(struct mrf_inbox *inbox)
{
	bool bars;

	mrf_lock_take(&inbox->ep->lock);
	bars = bars_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	return bars;
}

static bool wants_queue(struct mrf_inbox *inbox)
{
	bool wants;

	mrf_lock_take(&inbox->ep->lock);
	wants = mrf_list_empty(&inbox->inlets) && may_be_short(inbox);
	mrf_lock_release(&inbox->ep->lock);
	return wants;
}

/* If it cannot be made, it is tried again after a while. */
void mrf_lost_replace(struct mrf_inbox *inbox)
{
	struct mrf_vsrq *srq;

	if (!wants_queue(inbox) || mrf_slots_open_queue(&inbox->slots, &srq))
		return;
	mrf_lock_take(&inbox->ep->lock);
	srq = mrf_shared_move(&inbox->slots, srq);
	inbox->lost.unheard = 0;
	mrf_lock_release(&inbox->ep->lock);
	mrf_vsrq_close(srq);
	mrf_info(FI_LOG_EP_CTRL, "connections ended and may have taken receives for messages with "
				 "them: all are posted again");
}

static void look_again(struct mrf_timer *timer)
{
	struct mrf_inbox *inbox = mrf_container_of(timer, struct mrf_inbox, lost.timer);

	mrf_lock_take(&inbox->ep->lock);
	look_for_lost_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	mrf_lost_replace(inbox);
}

void mrf_lost_init(struct mrf_inbox *inbox)
{
	inbox->lost.timer.over = look_again;
}

void mrf_lost_stop(struct mrf_inbox *inbox)
{
	mrf_timer_stop(inbox->ep->agent, &inbox->lost.timer);
}

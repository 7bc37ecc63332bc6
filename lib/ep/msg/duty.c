/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/arrive.h"
#include "ep/msg/pull_step.h"
#include "ep/msg/duty.h"

static void watch_later(struct mrf_inbox *inbox)
{
	mrf_timer_set(inbox->ep->agent, &inbox->watch, MRF_DUTY_MS);
}

/*
 * A read that finds an entry does not poll, but who reads will poll when there is none. If there
 * always is one, because others write to the queue, the agent takes in now and then (looked).
 */
static bool is_read_locked(struct mrf_inbox *inbox)
{
	const struct mrf_ep *ep = inbox->ep;
	size_t before = inbox->read;

	inbox->read = (ep->tx_cq ? mrf_cq_taken(ep->tx_cq) : 0) +
		      (ep->rx_cq ? mrf_cq_taken(ep->rx_cq) : 0);
	return inbox->read != before;
}

/* Sleeping threads are told of messages themselves. */
static bool is_polled_locked(struct mrf_inbox *inbox)
{
	const struct mrf_ep *ep = inbox->ep;
	bool polled = is_read_locked(inbox) || inbox->polled || mrf_wait_asleep(&ep->link_tx) ||
		      mrf_wait_asleep(&ep->link_rx) || mrf_wait_asleep(&ep->link_wr) ||
		      mrf_wait_asleep(&ep->link_rd) || mrf_wait_asleep(&ep->link_snd) ||
		      mrf_wait_asleep(&ep->link_rcv);

	inbox->polled = false;
	return polled;
}

/* Completions that are there already tell nobody. */
static void begin_duty_locked(struct mrf_inbox *inbox)
{
	mrf_vcq_arm(inbox->vcq);
	mrf_ep_watch_locked(inbox->ep);
}

static void looked(struct mrf_timer *timer)
{
	struct mrf_inbox *inbox = mrf_container_of(timer, struct mrf_inbox, watch);
	struct mrf_ep *ep = inbox->ep;
	bool polled, full;

	mrf_lock_take(&ep->lock);
	polled = inbox->polled;
	inbox->on_duty = !is_polled_locked(inbox);
	if (inbox->on_duty)
		begin_duty_locked(inbox);
	if (!polled) {
		mrf_arrive_poll_locked(inbox);
		mrf_pull_step_late_locked(inbox);
	}
	full = mrf_inbox_has_full_locked(inbox);
	mrf_lock_release(&ep->lock);
	if (!inbox->on_duty || full)
		watch_later(inbox);
}

void mrf_duty_init(struct mrf_inbox *inbox)
{
	inbox->watch.over = looked;
}

void mrf_duty_begin(struct mrf_inbox *inbox)
{
	watch_later(inbox);
}

void mrf_duty_look(struct mrf_inbox *inbox)
{
	bool full;

	mrf_lock_take(&inbox->ep->lock);
	full = mrf_inbox_has_full_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	if (full && !mrf_timer_runs(&inbox->watch))
		watch_later(inbox);
}

void mrf_duty_rests_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (!inbox->on_duty)
		return;
	inbox->on_duty = false;
	mrf_timer_set(inbox->ep->agent, &inbox->watch,
		      is_polled_locked(inbox) ? MRF_DUTY_MS : MRF_REST_MS);
}

void mrf_duty_end(struct mrf_inbox *inbox)
{
	mrf_timer_stop(inbox->ep->agent, &inbox->watch);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/param.h"
#include "ep/model/ep.h"
#include "ep/msg/orphans.h"
#include "ep/msg/pull_step.h"
#include "loop/agent_calls.h"

static const struct mrf_why orphaned = {
	FI_ECONNRESET, 4337,
	"the sender has gone before all of the message had come, and has not connected again for "
	"FI_MRFAB_CONN_TIMEOUT milliseconds"
};

static int64_t patience(void)
{
	return (int64_t)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

static void give_up_all_locked(struct mrf_origin *origin)
{
	mrf_list_each_safe (node, &origin->offers)
		mrf_pull_give_up_locked(mrf_list_entry(node, struct mrf_message, offer.node),
					&orphaned);
}

/* How long until the next one is given up; -1: there is none. */
static int64_t give_up_orphans_locked(struct mrf_inbox *inbox)
{
	int64_t now = mrf_now_ms(), next = -1;

	mrf_list_each (node, &inbox->origins) {
		struct mrf_origin *origin = mrf_list_entry(node, struct mrf_origin, node);
		int64_t left = origin->lost + patience() - now;

		if (origin->inlet || mrf_list_empty(&origin->offers))
			continue;
		if (left <= 0)
			give_up_all_locked(origin);
		else
			next = next < 0 || left < next ? left : next;
	}
	return next;
}

static void look_for_orphans(struct mrf_timer *timer)
{
	struct mrf_inbox *inbox = mrf_container_of(timer, struct mrf_inbox, orphans);
	int64_t next;

	mrf_lock_take(&inbox->ep->lock);
	next = give_up_orphans_locked(inbox);
	mrf_pull_step_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	if (next >= 0)
		mrf_timer_set(inbox->ep->agent, &inbox->orphans, next);
}

void mrf_orphans_later(struct mrf_inbox *inbox)
{
	if (!mrf_timer_runs(&inbox->orphans))
		mrf_timer_set(inbox->ep->agent, &inbox->orphans, patience());
}

void mrf_orphans_init(struct mrf_inbox *inbox)
{
	inbox->orphans.over = look_for_orphans;
}

void mrf_orphans_end(struct mrf_inbox *inbox)
{
	mrf_timer_stop(inbox->ep->agent, &inbox->orphans);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device reports, and what the agent does about it.
 *
 * - A completion queue or a queue pair in error ends the connections that use it, which
 *   are made anew. A queue pair at which a peer was refused, which newer kernels report
 *   as well, is left alone (verbs/vevent.c): the peer has a completion with the reason,
 *   and connects again.
 * - A port that goes down is logged.
 * - rdma_cm reports the removal of the device to each id, listeners included. The domain
 *   logs it once, and its operations fail with what to do.
 */
#include "base/log.h"
#include "contract/budget.h"
#include "loop/device.h"
#include "verbs/verbs.h"

void mrf_agent_gone(struct mrf_agent *agent)
{
	if (atomic_exchange(&agent->gone, true))
		return;
	mrf_warn(FI_LOG_EP_CTRL, 4026,
		 "the device %s was removed: no peer reaches the endpoints of this domain any "
		 "more, and their operations fail (close endpoints and domain, and open them "
		 "again)",
		 mrf_vdev_name(agent->vdev));
}

/* --- connections that the device has broken ----------------------------------------------- */

static void lose_owner(struct mrf_owner *owner)
{
	if (owner->calls->broke)
		owner->calls->broke(owner);
}

/* Do its completions arrive in this queue? */
static void lose_if_spoilt(void *value, void *arg)
{
	struct mrf_owner *owner = value;

	if (arg == owner->cq->vcq || arg == owner->scq)
		lose_owner(owner);
}

static void handle(struct mrf_agent *agent, const struct mrf_vdev_event *event)
{
	const char *name = mrf_vdev_name(agent->vdev);

	switch (event->type) {
	case MRF_VDEV_CQ_ERR:
		/* Completions are lost, nobody knows whose: no connection with it can go on. */
		mrf_warn(FI_LOG_EP_CTRL, 4027,
			 "%s: a completion queue is in error: the connections that use it are made "
			 "anew",
			 name);
		mrf_idmap_each(&agent->owners, lose_if_spoilt, (void *)(uintptr_t)event->cq);
		break;
	case MRF_VDEV_QP_ERR:
		mrf_warn(FI_LOG_EP_CTRL, 4028, "%s: %s: the connection is made anew", name,
			 event->text);
		if (event->owner)
			lose_owner(event->owner);
		break;
	case MRF_VDEV_GONE:
		mrf_agent_gone(agent);
		break;
	case MRF_VDEV_PORT_DOWN:
		mrf_warn(FI_LOG_EP_CTRL, 4029,
			 "%s: the port is down: operations wait until it is up, or time out", name);
		break;
	default:
		mrf_info(FI_LOG_EP_CTRL, "%s: %s", name, event->text);
	}
}

void mrf_agent_device_event(struct mrf_agent *agent)
{
	struct mrf_vdev_event event;
	int i;

	/* The descriptor stays readable while there are more. */
	for (i = 0; i < MRF_TURN_EVENTS && !mrf_vdev_next_event(agent->vdev, &event); i++)
		handle(agent, &event);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/device.h"
#include "ep/service.h"
#include "ep/target_int.h"

static const char *name_of(const struct mrf_agent *agent)
{
	return mrf_vdev_name(agent->domain->vdev);
}

void mrf_agent_gone(struct mrf_agent *agent)
{
	if (atomic_exchange(&agent->gone, true))
		return;
	mrf_warn(FI_LOG_EP_CTRL, 4026,
		 "the device %s was removed: no peer reaches the endpoints of this domain any "
		 "more, and their operations fail (close endpoints and domain, and open them "
		 "again)",
		 name_of(agent));
}

/* --- connections that the device has broken ----------------------------------------------- */

/* As if the peer had gone: what is in flight comes back, or is given up after a time. */
static void lose(struct mrf_conn *conn)
{
	static const struct mrf_cm_event event = { .type = MRF_CM_DISCONNECTED };
	struct mrf_ep *ep = conn->peer->ep;

	mrf_lock_take(&ep->lock);
	if (conn->peer->state == MRF_PEER_READY)
		mrf_conn_event(conn, &event);
	mrf_lock_release(&ep->lock);
}

static void lose_owner(struct mrf_owner *owner)
{
	if (owner->kind == MRF_OWNER_CONN)
		lose(mrf_container_of(owner, struct mrf_conn, owner));
	else if (owner->kind == MRF_OWNER_PASV)
		mrf_pasv_doom(mrf_pasv_of(owner));
}

struct spoilt {
	const struct mrf_agent *agent;
	const struct mrf_vcq *cq;
};

/* Its completions come in there. */
static void lose_if_spoilt(void *value, void *arg)
{
	struct mrf_owner *owner = value;
	const struct spoilt *spoilt = arg;
	const struct mrf_conn *conn = mrf_container_of(owner, struct mrf_conn, owner);

	if (spoilt->cq == spoilt->agent->cq ||
	    (owner->kind == MRF_OWNER_CONN && conn->peer->ep->scq == spoilt->cq))
		lose_owner(owner);
}

/* Completions are lost, nobody knows whose: no connection that has any there can go on. */
static void overflowed(struct mrf_agent *agent, const struct mrf_vcq *cq)
{
	struct spoilt spoilt = { agent, cq };

	mrf_warn(FI_LOG_EP_CTRL, 4027,
		 "%s: a completion queue is in error: the connections that use it are made anew",
		 name_of(agent));
	mrf_idmap_each(&agent->owners, lose_if_spoilt, &spoilt);
}

static void broke(struct mrf_agent *agent, const struct mrf_vdev_event *event)
{
	mrf_warn(FI_LOG_EP_CTRL, 4028, "%s: %s: the connection is made anew", name_of(agent),
		 event->text);
	if (event->owner)
		lose_owner(event->owner);
}

static void handle(struct mrf_agent *agent, const struct mrf_vdev_event *event)
{
	switch (event->type) {
	case MRF_VDEV_CQ_ERR:
		overflowed(agent, event->cq);
		break;
	case MRF_VDEV_QP_ERR:
		broke(agent, event);
		break;
	case MRF_VDEV_GONE:
		mrf_agent_gone(agent);
		break;
	case MRF_VDEV_PORT_DOWN:
		mrf_warn(FI_LOG_EP_CTRL, 4029,
			 "%s: the port is down: operations wait for it, or end when their time is "
			 "over",
			 name_of(agent));
		break;
	default:
		mrf_info(FI_LOG_EP_CTRL, "%s: %s", name_of(agent), event->text);
	}
}

void mrf_agent_device_event(struct mrf_agent *agent)
{
	struct mrf_vdev_event event;
	int i;

	/* The descriptor stays readable while there are more. */
	for (i = 0; i < MRF_TURN_EVENTS &&
		    !mrf_vdev_next_event(agent->domain->vdev, &event); i++)
		handle(agent, &event);
}

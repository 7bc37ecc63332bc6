/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <rdma/fi_errno.h>
#include "verbs/verbs_int.h"
#include "verbs/verbs.h"

int mrf_vdev_event_fd(const struct mrf_vdev *dev)
{
	return dev->ctx->async_fd;
}

/*
 * QP_REQ_ERR and QP_ACCESS_ERR, which newer kernels report, say that a target has refused
 * something. The initiator logs that: it has a completion with the reason and makes the
 * connection anew.
 */
static enum mrf_vdev_event_type to_device_type(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return MRF_VDEV_CQ_ERR;
	case IBV_EVENT_QP_FATAL:
		return MRF_VDEV_QP_ERR;
	case IBV_EVENT_DEVICE_FATAL:
		return MRF_VDEV_GONE;
	case IBV_EVENT_PORT_ERR:
		return MRF_VDEV_PORT_DOWN;
	default:
		return MRF_VDEV_OTHER;
	}
}

/* The owner of the connection of a queue pair; NULL for those of loops and pairs. */
static void *owner_of(const struct ibv_qp *qp)
{
	const struct mrf_vconn *conn = qp->qp_context;

	return conn ? conn->owner : NULL;
}

int mrf_vdev_next_event(struct mrf_vdev *dev, struct mrf_vdev_event *event)
{
	struct pollfd fd = { .fd = dev->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event got;

	/* The descriptor blocks, and only the caller reads it. */
	if (poll(&fd, 1, 0) != 1)
		return -FI_EAGAIN;
	if (ibv_get_async_event(dev->ctx, &got))
		return mrf_verbs_errno();
	*event = (struct mrf_vdev_event){ .type = to_device_type(got.event_type),
					  .text = ibv_event_type_str(got.event_type) };
	if (event->type == MRF_VDEV_CQ_ERR)
		event->cq = got.element.cq->cq_context;
	else if (event->type == MRF_VDEV_QP_ERR)
		event->owner = owner_of(got.element.qp);
	/*
	 * Acknowledged at once: an object with an event that is not acknowledged cannot
	 * be destroyed.
	 */
	ibv_ack_async_event(&got);
	return 0;
}

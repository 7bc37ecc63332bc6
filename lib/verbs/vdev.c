/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/addr.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/lock.h"
#include "base/log.h"
#include "verbs/vdev.h"
#include "verbs/verbs_int.h"
#include "verbs/vnode.h"

/* Deeper send queues bring nothing and cost locked memory. */
#define MAX_QP_WR 16383
/* What rxe grants at most; every queue pair here asks for it. */
#define MAX_INLINE 512
/* The port's max_msg_sz; longer requests happen to work today and may not tomorrow. */
#define MAX_MSG_SIZE (8u << 20)
/* rdma_cm carries the depth in one byte. */
#define MAX_RD_ATOMIC 128

static int query_limits(struct mrf_vdev *dev)
{
	struct mrf_vdev_limits *lim = &dev->limits;
	struct ibv_device_attr attr;
	int ret;

	memset(&attr, 0, sizeof(attr));
	ret = mrf_verbs_ret(ibv_query_device(dev->ctx, &attr));
	if (ret)
		return ret;
	lim->max_mr = (size_t)attr.max_mr;
	lim->max_sge = (size_t)attr.max_sge;
	lim->max_qp_wr = mrf_min((uint64_t)attr.max_qp_wr, MAX_QP_WR);
	lim->max_cqe = (size_t)attr.max_cqe;
	lim->max_rd_atomic = mrf_min((uint64_t)attr.max_qp_rd_atom, MAX_RD_ATOMIC);
	lim->max_inline = MAX_INLINE;
	lim->max_msg_size = MAX_MSG_SIZE;
	return 0;
}

static void keep_high(struct ibv_context *ctx)
{
	ctx->cmd_fd = mrf_fd_high(ctx->cmd_fd);
	ctx->async_fd = mrf_fd_high(ctx->async_fd);
}

/*
 * This is a context of our own. That of the id is shared by all that the process does
 * with librdmacm, even in a forked child, from which the kernel takes no work requests on
 * it.
 */
static int open_own(const struct rdma_cm_id *id, struct ibv_context **ctx)
{
	/* rdma_cm leaves verbs NULL for an address that has no device. */
	if (!id->verbs)
		return -FI_ENODEV;
	keep_high(id->verbs);
	*ctx = ibv_open_device(id->verbs->device);
	if (!*ctx)
		return mrf_verbs_errno();
	keep_high(*ctx);
	return 0;
}

/* rdma_cm finds the device of an address. */
static int open_at(union mrf_addr *addr, struct ibv_context **ctx)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int ret;

	channel = rdma_create_event_channel();
	if (!channel)
		return mrf_verbs_errno();
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		ret = mrf_verbs_errno();
		goto out;
	}
	ret = rdma_bind_addr(id, &addr->sa) ? mrf_verbs_errno() : open_own(id, ctx);
	rdma_destroy_id(id);
out:
	rdma_destroy_event_channel(channel);
	return ret;
}

int mrf_vdev_open(const struct sockaddr *addr, struct mrf_vdev **out)
{
	union mrf_addr local;
	struct mrf_vdev *dev;
	int ret;

	if (!mrf_addr_set(&local, addr, SIZE_MAX))
		return -FI_EINVAL;
	/* Binding must not fight over the port that the application may have put there. */
	mrf_addr_set_port(&local, 0);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -FI_ENOMEM;
	ret = MRF_GATED(open_at(&local, &dev->ctx));
	if (ret)
		goto err_free;
	ret = query_limits(dev);
	if (ret)
		goto err_ctx;
	mrf_vdev_name_now(dev, dev->name, sizeof(dev->name));
	*out = dev;
	return 0;

err_ctx:
	ibv_close_device(dev->ctx);
err_free:
	free(dev);
	return ret;
}

void mrf_vdev_close(struct mrf_vdev *dev)
{
	int ret = mrf_verbs_ret(ibv_close_device(dev->ctx));

	mrf_slow_call();
	if (ret)
		mrf_warn(FI_LOG_DOMAIN, 3493, "the kernel did not close a device: error %d", -ret);
	free(dev);
}

const struct mrf_vdev_limits *mrf_vdev_limits(const struct mrf_vdev *dev)
{
	return &dev->limits;
}

const char *mrf_vdev_name(const struct mrf_vdev *dev)
{
	return dev->name;
}

void mrf_vdev_name_now(const struct mrf_vdev *dev, char *name, size_t len)
{
	const struct ibv_device *device = dev->ctx->device;

	if (!mrf_vnode_device(&mrf_vnode_dirs, device->dev_name, name, len))
		snprintf(name, len, "%s", device->name);
}

/* --- protection domains ---------------------------------------------------------------- */

int mrf_vpd_alloc(struct mrf_vdev *dev, struct mrf_vpd **out)
{
	struct mrf_vpd *vpd;
	int ret;

	mrf_slow_call();
	vpd = malloc(sizeof(*vpd));
	if (!vpd)
		return -FI_ENOMEM;
	vpd->dev = dev;
	vpd->pd = ibv_alloc_pd(dev->ctx);
	if (!vpd->pd) {
		ret = mrf_verbs_errno();
		free(vpd);
		return ret;
	}
	*out = vpd;
	return 0;
}

void mrf_vpd_free(struct mrf_vpd *vpd)
{
	int ret = mrf_verbs_ret(ibv_dealloc_pd(vpd->pd));

	mrf_slow_call();
	/* Nothing can be done about it any more: log it, and let go. */
	if (ret)
		mrf_warn(FI_LOG_DOMAIN, 5201,
			 "the kernel did not release a protection domain: error %d", -ret);
	free(vpd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures and errno translation shared by the files of lib/verbs only. */
#ifndef MRF_VERBS_VERBS_INT_H
#define MRF_VERBS_VERBS_INT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/fi_errno.h>
#include "verbs/verbs.h"

/* Immutable after mrf_vdev_open. */
struct mrf_vdev {
	char name[64];		 /* when it was opened */
	struct ibv_context *ctx; /* not shared */
	struct mrf_vdev_limits limits;
};

struct mrf_vpd {
	struct mrf_vdev *dev;
	struct ibv_pd *pd;
};

struct mrf_vconn {
	struct rdma_cm_id *id; /* its context points back here */
	struct ibv_qp *qp;     /* also id->qp if incoming and not sends_only: else unknown to id */
	void *owner;
	bool incoming;
	bool sends_only; /* of qp */
};

struct mrf_vsrq {
	struct ibv_srq *srq;
};

struct mrf_vcq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /* does not block */
	bool own_channel;		  /* false: that of the queue it was opened beside */
	bool deaf;			  /* the last arming failed; guarded like arming */
	bool armed; /* and nothing was taken out since; likewise, and by polling */
};

/*
 * The -FI_E* for a call that failed with errno: FI_E* below 256 are the system's numbers.
 * A call that failed without setting errno is an I/O error, never a success.
 */
static inline int mrf_verbs_errno(void)
{
	return errno > 0 ? -errno : -FI_EIO;
}

/* As mrf_verbs_errno, for calls that return 0, a positive errno, or -1 with errno set. */
static inline int mrf_verbs_ret(int ret)
{
	if (!ret)
		return 0;
	return ret > 0 ? -ret : mrf_verbs_errno();
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device and its protection domains. Each error is -FI_E*; none is logged, because only
 * the caller knows the purpose of the call.
 */
#ifndef MRF_VERBS_VDEV_H
#define MRF_VERBS_VDEV_H

#include <stddef.h>
#include <sys/socket.h>

struct mrf_vdev; /* one per domain, with a context of its own */

struct mrf_vdev_limits {
	size_t max_mr;
	size_t max_sge;
	size_t max_qp_wr;
	size_t max_cqe;
	size_t max_rd_atomic;
	size_t max_inline;   /* bytes that every queue pair here asks for and gets */
	size_t max_msg_size; /* bytes in one work request; longer accesses are split */
};

/* Finds and opens the device that owns a local address (port ignored). -FI_ENODEV ... */
int mrf_vdev_open(const struct sockaddr *addr, struct mrf_vdev **dev);
void mrf_vdev_close(struct mrf_vdev *dev);
const struct mrf_vdev_limits *mrf_vdev_limits(const struct mrf_vdev *dev);
/* Its name when it was opened. */
const char *mrf_vdev_name(const struct mrf_vdev *dev);
/* Its name now: rdma(8) changes the name of a device that is open. */
void mrf_vdev_name_now(const struct mrf_vdev *dev, char *name, size_t len);

struct mrf_vpd;

int mrf_vpd_alloc(struct mrf_vdev *dev, struct mrf_vpd **pd);
void mrf_vpd_free(struct mrf_vpd *pd);

#endif

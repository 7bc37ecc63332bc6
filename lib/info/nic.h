/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of a network interface (struct fid_nic). */
#ifndef MRF_INFO_NIC_H
#define MRF_INFO_NIC_H

#include <rdma/fabric.h>

/* A fid_nic with its own close operation; NULL when there is no memory. */
struct fid_nic *mrf_info_nic_make(const char *device, const char *netdev, const char *address);
struct fid_nic *mrf_info_nic_dup(const struct fid_nic *nic);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What costs much to find out about a device, and does not change: its driver, and its rate as long
 * as its interface has the same speed. Kept for the process, by the kernel's index, which a second
 * device gets only when the kernel's RDMA modules are loaded anew; then by its name, too.
 *
 * Any thread; in a forked child, too.
 */
#ifndef MRF_VERBS_VNL_KEPT_H
#define MRF_VERBS_VNL_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_vnl_dev;

/*
 * Sets driver and rate. False: they are not known. index, name and netdev are set; fd, a socket of
 * any kind, is for the one system call by which the speed of the interface is asked for each time.
 */
bool mrf_vnl_kept_find(int fd, struct mrf_vnl_dev *dev);
/* Reads the rate, and keeps it with the driver, if the kernel named one. */
void mrf_vnl_kept_add(int fd, struct mrf_vnl_dev *dev);
/* The interface of a device whose index and name are set. 0: it is not known. */
uint32_t mrf_vnl_kept_ifindex(const struct mrf_vnl_dev *dev);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What costs much to find out about a device, and does not change: its driver, its interface, and its
 * rate as long as the interface has the same speed. Kept for the process, by the kernel's index, which
 * a second device gets only when the kernel's RDMA modules are loaded anew; then by its name and its
 * GUID, too. A process that moves to another network namespace, where the interface may be another or
 * none, knows nothing of it.
 *
 * The kernel takes about 20 thousand instructions to tell a port's state. rxe derives it from its interface:
 * the port is active while that is up and has a carrier, which two short system calls tell. In any
 * other case the kernel is asked about the port.
 *
 * Any thread; in a forked child, too.
 */
#ifndef MRF_VERBS_VNL_KEPT_H
#define MRF_VERBS_VNL_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_vnl_dev;

/*
 * Sets the rest of *dev, whose index, name and GUID are set. False: it is not known, or its interface
 * is not running or has another speed; nothing was set. fd: a socket of any kind, for four system
 * calls about the interface.
 */
bool mrf_vnl_kept_find(int fd, struct mrf_vnl_dev *dev);
/* Reads the rate, and keeps it with the driver, if the kernel named one. */
void mrf_vnl_kept_add(int fd, struct mrf_vnl_dev *dev);
/* The interface of a device whose index, name and GUID are set. 0: it is not known. fd: likewise. */
uint32_t mrf_vnl_kept_ifindex(int fd, const struct mrf_vnl_dev *dev);

#endif

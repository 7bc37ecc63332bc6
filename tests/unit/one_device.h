/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells of devices and addresses, for tests of fi_getinfo: one soft-RoCE device
 * with one address.
 */
#ifndef ONE_DEVICE_H
#define ONE_DEVICE_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include "../fake/fake_vnl.h"
#include "unit.h"

#define ONE_DEVICE "rxe0" /* the one that tests/fake has */

static inline int one_dev(struct mrf_vnl_dev **devs, size_t *count)
{
	*devs = calloc(1, sizeof(**devs));
	ck_assert_ptr_nonnull(*devs);
	snprintf((*devs)->name, sizeof((*devs)->name), ONE_DEVICE);
	snprintf((*devs)->netdev, sizeof((*devs)->netdev), "dummy0");
	(*devs)->has_driver = true;
	(*devs)->driver = RDMA_DRIVER_RXE;
	(*devs)->port_state = IBV_PORT_ACTIVE;
	*count = 1;
	return 0;
}

static inline int one_ifaddr(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	*addrs = calloc(1, sizeof(**addrs));
	ck_assert_ptr_nonnull(*addrs);
	snprintf((*addrs)->netdev, sizeof((*addrs)->netdev), "dummy0");
	(*addrs)->addr.sa.sa_family = AF_INET;
	inet_pton(AF_INET, "10.99.1.1", &(*addrs)->addr.in.sin_addr);
	(*addrs)->prefix = 24;
	*count = 1;
	return 0;
}

static inline void one_device_use(void)
{
	fake_vnl.devs = one_dev;
	fake_vnl.ifaddrs = one_ifaddr;
}

#endif

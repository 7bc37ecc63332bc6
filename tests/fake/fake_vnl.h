/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells of devices and addresses, in place of lib/verbs/vnl.c; as long as a
 * function is NULL, the kernel is asked. For one .c file of a program that is linked with
 * $(WRAP_VNL).
 */
#ifndef FAKE_VNL_H
#define FAKE_VNL_H

#include "verbs/vnl_path.h"

static struct {
	int (*devs)(struct mrf_vnl_dev **devs, size_t *count);
	int (*ifaddrs)(struct mrf_vnl_ifaddr **addrs, size_t *count);
	const struct mrf_vnl_netdevs *only; /* of the present call of devs */
} fake_vnl;

int __real_mrf_vnl_devs(struct mrf_vnl_dev **devs, size_t *count,
			const struct mrf_vnl_netdevs *only);
int __wrap_mrf_vnl_devs(struct mrf_vnl_dev **devs, size_t *count,
			const struct mrf_vnl_netdevs *only);
int __real_mrf_vnl_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count);
int __wrap_mrf_vnl_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count);

int __wrap_mrf_vnl_devs(struct mrf_vnl_dev **devs, size_t *count,
			const struct mrf_vnl_netdevs *only)
{
	fake_vnl.only = only;
	return fake_vnl.devs ? fake_vnl.devs(devs, count) : __real_mrf_vnl_devs(devs, count, only);
}

int __wrap_mrf_vnl_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	return (fake_vnl.ifaddrs ? fake_vnl.ifaddrs : __real_mrf_vnl_ifaddrs)(addrs, count);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IP addresses of the network interfaces, from the kernel, over netlink. Nothing is kept or
 * logged; any thread may call.
 */
#ifndef MRF_VERBS_VNL_ADDR_H
#define MRF_VERBS_VNL_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include "base/addr.h"

/* An address of a network interface. */
struct mrf_vnl_ifaddr {
	char netdev[16];
	uint32_t ifindex;
	union mrf_addr addr; /* port 0 */
	unsigned prefix;     /* bits of the network part */
	unsigned mtu;	     /* bytes, of the interface; 0: unknown */
	bool loopback;	     /* likewise */
	bool peer; /* IPv4: has the address of its peer beside it (ip address add ... peer) */
};

/*
 * All of them, IPv4 before IPv6. The caller frees the array, which is never NULL. -FI_ENOMEM, or
 * -FI_EIO: the kernel does not answer.
 */
int mrf_vnl_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count);

struct nlmsghdr;

/*
 * Reads one of the kernel's answers to RTM_GETADDR; of the interface, only ifindex is set. False: it
 * is no address of IP.
 */
bool mrf_vnl_parse_addr(struct nlmsghdr *hdr, struct mrf_vnl_ifaddr *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the soft-RoCE devices and the IP addresses through which they are reached. Any thread may
 * call.
 */
#ifndef MRF_VERBS_VNL_PATH_H
#define MRF_VERBS_VNL_PATH_H

#include <stddef.h>
#include "verbs/vnl.h"
#include "verbs/vnl_addr.h"

enum mrf_vnl_state {
	MRF_VNL_USABLE,
	MRF_VNL_NO_DRIVER, /* the kernel does not name the driver: ib_uverbs not loaded */
	MRF_VNL_NOT_RXE,   /* some other kind of RDMA device */
	MRF_VNL_NO_NETDEV, /* its network interface is in another network namespace */
	MRF_VNL_LOOPBACK,  /* on a loopback interface, where rdma_cm does not work */
	MRF_VNL_PORT_DOWN,
	MRF_VNL_NO_ADDRESS, /* no IPv4 address, and IPv6 addresses at most link-local */
	MRF_VNL_PEER,	    /* this address has a peer's beside it, which takes its GID */
	MRF_VNL_ABOVE, /* this address is of an interface above the device's, a VLAN for instance */
	MRF_VNL_STATES
};

/* A way to reach the fabric: a device and one of its addresses. */
struct mrf_vnl_path {
	enum mrf_vnl_state state;
	struct mrf_vnl_dev dev;
	union mrf_addr addr;  /* zeroed unless USABLE, PEER or ABOVE */
	unsigned prefix, mtu; /* as in struct mrf_vnl_ifaddr */
	char above[16];	      /* the address's interface, if ABOVE */
};

/* Names addresses. */
struct mrf_vnl_only {
	bool (*names)(const struct mrf_vnl_only *only, const union mrf_addr *addr);
};

/* The code of the line that says it, as in MRF-E1045. */
unsigned mrf_vnl_code(enum mrf_vnl_state state);
/* Describes the state in one sentence, including the remedy. */
void mrf_vnl_why(const struct mrf_vnl_path *path, char *why, size_t len);

/*
 * All paths, in the order of mrf_vnl_devs and mrf_vnl_ifaddrs; a device that cannot be
 * used has one path that says why. above: also those that are ABOVE, which takes a system call for
 * each device and each address that is not the device's. With only, devices may be missing that have
 * no address among those that it names. The caller frees *paths. The errors of these two, or
 * -FI_ENOMEM. Logs nothing.
 */
int mrf_vnl_paths(struct mrf_vnl_path **paths, size_t *count, bool above,
		  const struct mrf_vnl_only *only);

#endif

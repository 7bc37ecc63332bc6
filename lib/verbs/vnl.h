/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the soft-RoCE devices and the IP addresses through which they are reached. It
 * asks the kernel over RDMA netlink, without opening a device, so discovery costs a few
 * system calls and needs no privilege.
 *
 * The two look-ups go through mrf_vnl_source: a test puts its own functions there before
 * the first call. No state is kept between calls; any thread may call.
 */
#ifndef MRF_VERBS_VNL_H
#define MRF_VERBS_VNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>

enum mrf_vnl_state {
	MRF_VNL_USABLE,
	MRF_VNL_NO_DRIVER, /* the kernel does not name the driver: ib_uverbs not loaded */
	MRF_VNL_NOT_RXE,   /* some other kind of RDMA device */
	MRF_VNL_NO_NETDEV, /* its network interface is in another network namespace */
	MRF_VNL_LOOPBACK,  /* on a loopback interface, where rdma_cm does not work */
	MRF_VNL_PORT_DOWN,
	MRF_VNL_NO_ADDRESS, /* no IPv4 address, and IPv6 addresses at most link-local */
	MRF_VNL_STATES
};

/* A device as the kernel describes it. */
struct mrf_vnl_dev {
	char name[64];	 /* "rxe0" */
	char netdev[16]; /* "eth0", or "" when it is not visible here */
	uint32_t index;
	uint32_t ifindex; /* 0 when not visible here */
	bool has_driver;
	uint64_t driver;     /* RDMA_DRIVER_*, valid with has_driver */
	unsigned port_state; /* IBV_PORT_* */
};

union mrf_vnl_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* An address of a network interface. */
struct mrf_vnl_ifaddr {
	char netdev[16];
	union mrf_vnl_addr addr; /* port 0 */
	unsigned prefix;	 /* bits of the network part */
	bool loopback;		 /* of the interface */
};

/* A way to reach the fabric: a device and one of its addresses. */
struct mrf_vnl_path {
	enum mrf_vnl_state state;
	struct mrf_vnl_dev dev;
	union mrf_vnl_addr addr; /* zeroed unless USABLE */
	unsigned prefix;
};

/* Describes the state in one sentence, including the remedy. */
void mrf_vnl_why(const struct mrf_vnl_path *path, char *why, size_t len);

struct mrf_vnl_source {
	/* Both return 0 and a malloc'ed array (NULL when *count is 0), or -FI_E*. */
	int (*devs)(struct mrf_vnl_dev **devs, size_t *count);
	int (*ifaddrs)(struct mrf_vnl_ifaddr **addrs, size_t *count);
};

extern struct mrf_vnl_source mrf_vnl_source;

/*
 * All paths, in the kernel's order of devices, IPv4 before IPv6; a device that cannot be
 * used has one path that says why. The caller frees *paths. -FI_ENOSYS: this kernel has
 * no RDMA subsystem loaded; -FI_ENOMEM; or netlink's error. Logs nothing.
 */
int mrf_vnl_paths(struct mrf_vnl_path **paths, size_t *count);

/*
 * Counts how often the queue pairs of the named device began to resend unacknowledged
 * packets. -FI_ENODATA: the device does not count that; -FI_ENODEV; or the errors of
 * mrf_vnl_paths.
 */
int mrf_vnl_retries(const char *name, uint64_t *count);
/* Reads that count from the attributes of a STAT_GET answer. False: it is not there. */
bool mrf_vnl_parse_retries(const void *attrs, size_t len, uint64_t *count);

/* The real look-ups. */
int mrf_vnl_kernel_devs(struct mrf_vnl_dev **devs, size_t *count);
int mrf_vnl_kernel_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count);

/*
 * Reads one answer of the kernel into *dev: len bytes of attributes of a GET, PORT_GET or
 * GET_CHARDEV answer. Attributes of a wrong size are skipped. False: the bytes are not
 * valid attributes.
 */
bool mrf_vnl_parse(const void *attrs, size_t len, struct mrf_vnl_dev *dev);

#endif

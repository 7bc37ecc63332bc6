/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says of RDMA devices, over RDMA netlink and without opening a device: a few
 * system calls, and no privilege is needed. Nothing is kept between calls but what a device does not
 * change (vnl_kept.h); nothing is logged; any thread may call.
 */
#ifndef MRF_VERBS_VNL_H
#define MRF_VERBS_VNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netlink/netlink.h>

/* A device as the kernel describes it. */
struct mrf_vnl_dev {
	char name[64];	 /* "rxe0" */
	char netdev[16]; /* "eth0", or "" when it is not visible here */
	uint32_t index;
	uint64_t guid;	  /* the kernel makes it of the interface's hardware address */
	uint32_t ifindex; /* 0 when not visible here */
	bool has_driver;
	uint64_t driver;     /* RDMA_DRIVER_*, valid with has_driver */
	unsigned port_state; /* IBV_PORT_*, of a soft-RoCE device */
	size_t rate;	     /* bits per second; 0: unknown */
};

/* Network interfaces, by their index. */
struct mrf_vnl_netdevs {
	uint32_t *ifindex;
	size_t count;
};

/*
 * All devices, in the kernel's order; with only, those may be missing that are known to be on another
 * interface. The caller frees the array, which is NULL when *count is 0.
 * -FI_ENOSYS: this kernel has no RDMA subsystem loaded; -FI_ENOMEM; or the kernel's error.
 */
int mrf_vnl_devs(struct mrf_vnl_dev **devs, size_t *count, const struct mrf_vnl_netdevs *only);

/*
 * Counts how often the queue pairs of the named device began to resend unacknowledged
 * packets. -FI_ENODATA: the device does not count that; -FI_ENODEV; or the errors of
 * mrf_vnl_devs.
 */
int mrf_vnl_retries(const char *name, uint64_t *count);
/* Reads that count from the attributes of a STAT_GET answer. False: it is not there. */
bool mrf_vnl_parse_retries(const void *attrs, size_t len, uint64_t *count);

/*
 * Reads one answer of the kernel into *dev: len bytes of attributes of a GET, PORT_GET or
 * GET_CHARDEV answer. Attributes of a wrong size are skipped. False: the bytes are not
 * valid attributes.
 */
bool mrf_vnl_parse(const void *attrs, size_t len, struct mrf_vnl_dev *dev);

/*
 * A socket to ask the kernel by. NULL: *err is -FI_ENOMEM, or none: the kernel does not have this
 * protocol.
 */
struct nl_sock *mrf_vnl_connect(int protocol, int none, int *err);
/*
 * Sends msg, which it frees, and feeds the answers to visit. -FI_EIO: the kernel refused, or did not
 * answer.
 */
int mrf_vnl_ask(struct nl_sock *sk, struct nl_msg *msg, nl_recvmsg_msg_cb_t visit, void *arg);

#endif

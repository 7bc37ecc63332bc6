/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs and librdmacm, as the rest of the library sees them. Only lib/verbs includes
 * their headers; every error of theirs (NULL + errno, positive errno, -1 + errno) becomes -FI_E* here.
 * Nothing here logs refusals except where said: the caller knows what it wanted.
 */
#ifndef MRF_VERBS_VERBS_H
#define MRF_VERBS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* --- vdev: the device ------------------------------------------------------------ */

struct mrf_vcq;
struct mrf_vdev; /* one per domain, with a context of its own */

struct mrf_vdev_limits {
	size_t max_mr;
	size_t max_sge;
	size_t max_qp_wr;
	size_t max_cqe;
	size_t max_rd_atomic;
	size_t max_inline;   /* bytes that every QP here asks for and gets */
	size_t max_msg_size; /* bytes in one work request; longer ones are split */
};

/* Finds and opens the device that owns a local address (port ignored). -FI_ENODEV ... */
int mrf_vdev_open(const struct sockaddr *addr, struct mrf_vdev **dev);
void mrf_vdev_close(struct mrf_vdev *dev);
const struct mrf_vdev_limits *mrf_vdev_limits(const struct mrf_vdev *dev);
const char *mrf_vdev_name(const struct mrf_vdev *dev);

/*
 * What a device has sent a second time, because no acknowledgement came: the target may have
 * carried it out already.
 */
struct mrf_vdev_retries {
	bool known;
	uint64_t count;
};

/* How often that has happened on the device until now; not known when nobody tells. */
void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now);
/* Has it happened since? True as well where that is not known. */
bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since);

enum mrf_vdev_event_type {
	MRF_VDEV_CQ_ERR,    /* completions are lost */
	MRF_VDEV_QP_ERR,    /* a queue pair is in error */
	MRF_VDEV_GONE,	    /* the device works no longer */
	MRF_VDEV_PORT_DOWN,
	MRF_VDEV_OTHER	    /* to be told to people only */
};

struct mrf_vdev_event {
	enum mrf_vdev_event_type type;
	const char *text;	  /* for people; constant */
	const struct mrf_vcq *cq; /* CQ_ERR; it may have been closed since */
	void *owner;		  /* QP_ERR: the connection's, or NULL */
};

/* Readable when the device has something to tell. */
int mrf_vdev_event_fd(const struct mrf_vdev *dev);
/*
 * -FI_EAGAIN: there is nothing. One thread only, which is the one that closes connections: the
 * owner is good until it does.
 */
int mrf_vdev_next_event(struct mrf_vdev *dev, struct mrf_vdev_event *event);

/* --- vpd: protection domains ------------------------------------------------------ */

struct mrf_vpd;

int mrf_vpd_alloc(struct mrf_vdev *dev, struct mrf_vpd **pd);
void mrf_vpd_free(struct mrf_vpd *pd);

/* --- vmr: kernel memory regions ---------------------------------------------------- */

enum mrf_right {
	MRF_RIGHT_LOCAL_WRITE = 1 << 0, /* the device may write for a local operation */
	MRF_RIGHT_REMOTE_READ = 1 << 1,
	MRF_RIGHT_REMOTE_WRITE = 1 << 2, /* the kernel wants LOCAL_WRITE with it: added */
	MRF_RIGHT_REMOTE_ATOMIC = 1 << 3 /* likewise */
};

struct mrf_vmr {
	void *handle; /* NULL: not registered */
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * Pins [addr, addr + len) and registers it at iova, which must be congruent with addr modulo
 * the page size. len > 0. Exactly the rights asked for. -FI_EFAULT (not mapped, or not
 * writable though needed), -FI_ENOMEM (memlock, regions or memory), -FI_EPERM (memlock 0), -FI_EINVAL.
 */
int mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
		unsigned rights, struct mrf_vmr *vmr);
/* On return the kernel lets nobody through to the memory. Harmless when not registered. */
int mrf_vmr_dereg(struct mrf_vmr *vmr);
/* The same for memory of the library's own: what the kernel keeps is said, and forgotten. */
void mrf_vmr_drop(struct mrf_vmr *vmr);
/*
 * mrf_vmr_dereg for one that is registered, but gives no memory back to the allocator (which
 * might be locked by the thread that waits for this); mrf_vmr_free does, later.
 */
int mrf_vmr_revoke(struct mrf_vmr *vmr);
void mrf_vmr_free(struct mrf_vmr *vmr);

#endif

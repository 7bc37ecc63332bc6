/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process's side of the fabric: info, fabric, domain, AV, CQ, endpoint, and what is
 * done with them. Every unexpected answer of the library fails the case.
 */
#ifndef FUNC_FAB_H
#define FUNC_FAB_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "buf.h"
#include "case.h"

#define NAME_LEN 64
#define SOON 20000 /* ms: within that, every operation completes, one to a dead peer too */

/* How to open; all zero is the usual. */
struct fab_opt {
	uint64_t tx_flags; /* tx_attr->op_flags */
	uint64_t cq_flags; /* beside FI_TRANSMIT | FI_RECV when the CQ is bound */
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	enum fi_av_type av;
	bool counters; /* bind one for FI_WRITE, one for FI_READ */
	bool async;    /* an EQ tells of registrations: FI_REG_MR */
	bool hmem;     /* memory of devices: FI_HMEM, FI_MR_HMEM */
	uint32_t addr_format;
	char node[NAME_LEN]; /* local address, FI_SOURCE */
	char service[16];    /* its port, unless empty */
	char monitor[16];    /* FI_MR_CACHE_MONITOR, unless empty */
	char auth_key[32];   /* of the domain, unless empty */
	unsigned uid;	     /* of a peer: what it becomes before it opens anything */
	bool closed;	     /* of a peer: it closes 0, 1 and 2 before */
	size_t memlock;	     /* of a peer, likewise: RLIMIT_MEMLOCK; 0: as it is */
};

#define MAPPED 4096 /* keys that fab_map keeps */

struct fab {
	const struct mode *mode;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *wrote;
	struct fid_cntr *did_read;
	struct fid_ep *ep;
	uint64_t bits;		    /* the mode as granted, BASIC spelt out */
	bool local, virt, prov_key; /* of these */
	char name[NAME_LEN];	    /* of the endpoint */
	size_t name_len;
	uint64_t *mapped; /* keys of fab_map, nmapped of MAPPED */
	unsigned nmapped;
	struct fid_mr **left; /* of fab_mr_close */
	unsigned nleft;
};

/* Capabilities that a program wants in every mode. */
extern uint64_t func_caps;
/* Orders that it wants beside those that are offered without being asked for. */
extern uint64_t func_order;
/* FI_MR_HMEM, if all domains are to have it (placed.h); else 0. */
extern int fab_placed;

const char *provider(void);
struct fi_info *hints_new(const struct mode *mode, const struct fab_opt *opt);
/* fi_getinfo with those hints. */
int fab_info(const struct mode *mode, const struct fab_opt *opt, struct fi_info **info);
void fab_open(struct fab *f, const struct mode *mode, const struct fab_opt *opt);
/* Without the endpoint: what cases about objects start from. */
void fab_open_domain(struct fab *f, const struct mode *mode, const struct fab_opt *opt);
/* Whatever is open, in the right order; each fi_close must work. */
void fab_close(struct fab *f);
fi_addr_t fab_insert(struct fab *f, const void *name);

/* What the mode demands before a new region may be used: binds, enables, refreshes. */
void fab_ready(struct fab *f, struct fid_mr *mr);
/*
 * fi_close. A region that is bound to the endpoint cannot be closed before it: it is left
 * for fab_close then.
 */
int fab_mr_close(struct fab *f, struct fid_mr *mr);
/* A peer's raw key; unmapped by fab_unmap_all at the latest. */
uint64_t fab_map(struct fab *f, uint64_t base, const void *raw, size_t size);
void fab_unmap_all(struct fab *f);

/* Registers bytes of b wherever they are; nothing that the mode demands is done. */
int fab_reg(struct fab *f, const struct buf *b, const struct iovec *iov, uint64_t access,
	    uint64_t key, struct fid_mr **mr);
/* Registers all of b when the mode, or its memory, wants descriptors. */
void fab_buf(struct fab *f, struct buf *b, size_t size, uint64_t seed);
void fab_buf_close(struct buf *b);

/* One completion, success (err 0) or error. */
struct done {
	void *ctx;
	uint64_t flags;
	size_t len;
	uint64_t data;
	int err; /* positive FI_E* */
	int prov_errno;
	char text[500]; /* err_data and fi_cq_strerror, as the provider gives them */
};

bool fab_poll(struct fab *f, struct done *d);
/* Waits for a completion, up to so many ms; false: none came. */
bool fab_done(struct fab *f, struct done *d, long ms);
/* No completion is there; fails the case otherwise. */
void fab_quiet(struct fab *f);

struct op {
	bool read;
	struct buf *buf;
	size_t off, len;
	fi_addr_t to;
	uint64_t addr, key;
	void *ctx;
};

/* Posts, again and again on -FI_EAGAIN. Any other answer is returned. */
ssize_t op_post(struct fab *f, const struct op *op);
/* A message, or a receive. */
struct msg_part {
	struct buf *buf;
	size_t off, len;
	fi_addr_t to;
	void *ctx;
	bool tagged;
	uint64_t tag;
};

/* Again and again on -FI_EAGAIN. Any other answer is returned. */
ssize_t msg_send(struct fab *f, const struct msg_part *m);
ssize_t msg_recv(struct fab *f, const struct msg_part *m);
/* Within so many ms it completes: emulated machines, four at once, move a few MiB in a second. */
int op_patience(const struct op *op);
/* Posts and waits for its completion. */
void op_run(struct fab *f, const struct op *op, struct done *d);
/* Waits for n completions, which must be successes. */
void fab_wait_ok(struct fab *f, unsigned n);

#endif

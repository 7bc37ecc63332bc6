/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One data transfer at the initiator, from the call to its completion.
 *
 *   new --(local buffers ready)--> queued --(keys known)--> posted --(all acknowledged)--> done
 *            |                        ^                        |
 *            +--> refused (call)      +---(connection lost)----+--> failed (completion)
 *
 * An operation is a run of bytes [0, total). `pos` says how far it has been posted, `acked` how
 * far the target has acknowledged; acked <= pos <= total. After a lost connection pos goes back to
 * acked, so no acknowledged byte is ever sent twice. Belongs to its endpoint; the endpoint's lock guards it.
 */
#ifndef MRF_EP_OP_H
#define MRF_EP_OP_H

#include <string.h>
#include <rdma/fi_rma.h>
#include "base/list.h"
#include "obj/cq.h"
#include "verbs/vqp.h"

#define MRF_OP_SGE 16 /* local pieces of one operation */

struct mrf_ep;
struct mrf_op;
struct mrf_rpc;
struct mrf_peer;

enum mrf_op_kind {
	MRF_OP_READ,
	MRF_OP_WRITE,
	MRF_OP_RPC,   /* the peer's agent does it: rpc.h */
	MRF_OP_ATOMIC /* the device or the peer's agent: atomic.h */
};

/*
 * How the bytes of an operation go out, and what follows. Constant. An operation may become
 * one of another type: with FI_COMMIT_COMPLETE it is a request, a write, and a request again.
 */
struct mrf_op_type {
	enum mrf_op_kind kind;
	bool begun; /* it was another type before, and is beyond canceling */
	const struct mrf_rpc *rpc; /* how the agent is asked for it; NULL: it is not */
	/*
	 * Posts what comes next of op, of which something is left. -FI_ENOKEY: what was
	 * known of its keys has changed; -FI_EAGAIN: once what is in flight of it is back;
	 * otherwise what the device says.
	 */
	int (*post)(struct mrf_peer *peer, struct mrf_op *op);
	/* What was not acknowledged will be posted again. NULL: that takes nothing. */
	void (*again)(struct mrf_ep *ep, struct mrf_op *op);
	/*
	 * All is done: hands over what came back. -FI_ECANCELED: a region it was to go to is
	 * closed; -FI_EFAULT: a buffer is not there. NULL: it is in op->bounce or in place.
	 */
	int (*deliver)(struct mrf_ep *ep, struct mrf_op *op);
	/* All is done, and op becomes another: its next type. NULL: it completes. */
	void (*done)(struct mrf_peer *peer, struct mrf_op *op);
};

/* Where the bytes are on this side. */
enum mrf_op_local {
	MRF_LOCAL_DESC,	  /* registered by the application */
	MRF_LOCAL_INLINE, /* copied into the operation */
	MRF_LOCAL_BOUNCE, /* copied to or from a registered slot of the endpoint */
	MRF_LOCAL_TEMP,	  /* registered for this operation only, without remote rights */
	MRF_LOCAL_COPY	  /* copied to memory of our own that is registered like TEMP */
};

#define MRF_OP_INLINE 256 /* bytes; what fi_getinfo offers as inject_size */

/* Kind ATOMIC. */
struct mrf_op_atomic {
	uint8_t family; /* enum mrf_atomic_family */
	uint8_t datatype;
	uint8_t op;
	uint8_t size;	/* bytes of an element */
	bool native;	/* the device can, where the element lies well */
	uint8_t stored; /* by rma: a request has stored something there */
	bool landed;	/* something came or comes back into cells */
	uint64_t collected; /* how far what came back has been taken out of them */
};

struct mrf_op {
	struct mrf_list node;	/* in peer->queue, peer->redo or ep->free_ops */
	struct mrf_peer *peer;
	unsigned number;	/* among those of the endpoint, < MRF_EP_ALL_OPS; immutable */
	/* from here to sge: see mrf_op_reset */
	const struct mrf_op_type *type;
	enum mrf_op_local local;
	bool queued;		/* in peer->queue or peer->redo */
	bool has_imm;
	bool fence;
	bool silent;		/* no completion when it succeeds */
	bool ask_first;		/* even a key that carries its rkey must be resolved */
	bool resolved;		/* all keys known good; holds until the next requeue */
	bool imm_posted;
	bool told;		/* the target counts it as it lands: never done twice */
	uint8_t timeouts;
	uint8_t empty_known;	/* by rma: no bytes, and an answer allowed that */
	bool posted;		/* once, and flushed; perhaps it ran */
	uint16_t refused;	/* times that the target's kernel said no */
	enum mrf_wc_status fatal; /* not OK: fails with this once nothing is in flight */
	uint32_t imm;
	uint32_t inflight;	/* work requests posted and not completed */
	uint32_t awaiting;	/* requests to the agent without a reply */
	uint64_t stamp;		/* only answers asked for at or after this may refuse it */
	uint64_t total;
	uint64_t pos;
	uint64_t acked;
	uint64_t comp_flags;	/* of its completion; FI_READ: counts as one */
	struct mrf_op_atomic atomic;
	void *context;
	void *bounce;		/* local == BOUNCE or COPY: the slot or the copy */
	struct mrf_vmr *temp;	/* local == TEMP or COPY: ntemp registrations */
	int ntemp;
	int nsge;
	int nrma;
	int ndesc;
	int nuser;
	struct mrf_sge sge[MRF_OP_SGE];
	struct fi_rma_iov rma[8];
	void *desc[8];		/* local == DESC: what sge was made of */
	struct iovec user[8];	/* bounce or copy of a read: where it goes in the end */
	uint8_t data[MRF_OP_INLINE];
};

#define MRF_OP_RESET (offsetof(struct mrf_op, sge) - offsetof(struct mrf_op, type))

_Static_assert(MRF_OP_RESET >= 128 && MRF_OP_RESET <= 192, "see mrf_op_reset");

/* In pieces so short that compilers store registers: a loop for all takes twice as long. */
static inline void mrf_op_reset(struct mrf_op *op)
{
	uint8_t *at = (uint8_t *)op + offsetof(struct mrf_op, type);

	memset(at, 0, 64);
	memset(at + 64, 0, 64);
	memset(at + 128, 0, MRF_OP_RESET - 128);
}

/* What a data transfer call asks for, from any fi_ops_rma entry. */
struct mrf_req {
	const struct mrf_op_type *type;
	const struct iovec *iov;
	void **desc; /* NULL, or one per iov */
	size_t count;
	const struct fi_rma_iov *rma;
	size_t rma_count;
	fi_addr_t addr;
	void *context;
	uint64_t data;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE ... */
	bool silent;	/* fi_inject_*: no completion when it succeeds */
};

/*
 * An operation of this endpoint, which counts from now on, uninitialised. There has to be place
 * for it: mrf_peer_has_place. -FI_ENOMEM.
 */
int mrf_op_take(struct mrf_ep *ep, struct mrf_op **op);
/*
 * Builds an operation from a checked request: finds or makes the local registrations. The errors of
 * mrf_op_take, -FI_EINVAL (descriptor), -FI_EACCES (its right), -FI_EFAULT, -FI_ENOMEM.
 */
int mrf_op_new(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op **op);
/* Gives back what it holds; no completion. */
void mrf_op_free(struct mrf_ep *ep, struct mrf_op *op);
/* Success: delivers a read, completion as asked for, free. */
void mrf_op_done(struct mrf_ep *ep, struct mrf_op *op);
/* Failure: always a completion with err (FI_E*), reason code and text; free. */
void mrf_op_fail(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text);

/* op is no longer in peer->queue or peer->redo. */
static inline void mrf_op_leave(struct mrf_op *op)
{
	mrf_list_del(&op->node);
	op->queued = false;
}

/* Registered slots for small unregistered buffers; one pool per endpoint. */
#define MRF_BOUNCE_SIZE 16384

struct mrf_bounce_pool {
	struct mrf_list slabs;
	void *free; /* singly linked through the slots */
	unsigned nslabs;
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One data transfer at the initiator, from the call to its completion.
 *
 *   taken --(local buffers ready)--> queued --(keys known)--> posted --(acknowledged)--> done
 *            |                          ^                        |
 *            +--> refused (call)        +---(connection lost)----+--> failed (completion)
 *
 * What of it is posted, done and out at any time is its account: account.h. After a lost
 * connection it is posted again from the first byte that is not done, so no acknowledged byte is
 * ever sent twice.
 *
 * An operation belongs to its endpoint and is guarded by the endpoint's lock, except at
 * its two ends, when one thread alone works on it: while its local buffers are brought
 * within the device's reach (buf/local.h), and when its results are copied back and its
 * buffers let go (tx/chores.h). Each may take long and is done without the lock.
 */
#ifndef MRF_EP_MODEL_OP_H
#define MRF_EP_MODEL_OP_H

#include <string.h>
#include <rdma/fi_rma.h>
#include "base/list.h"
#include "buf/local.h"
#include "contract/limits.h"
#include "ep/model/kind.h"
#include "ep/model/why.h"

struct mrf_ep;
struct mrf_op;
struct mrf_rpc;
struct mrf_peer;

/*
 * How the bytes of an operation are sent, and what follows. Constant. The type of an
 * operation may change: with FI_COMMIT_COMPLETE it is first a request, then a write, then
 * a request again.
 */
struct mrf_op_type {
	enum mrf_op_kind kind;
	const char *call;	   /* that begins it, for messages; NULL: none, or one of many */
	bool begun;		   /* the operation had another type before: cannot be canceled */
	bool data;		   /* what it posts carries the data for the peer's application */
	bool parts;		   /* a message for whose bytes the target asks part by part */
	const struct mrf_rpc *rpc; /* how to ask the peer's agent; NULL: never */
	/*
	 * Posts the next part of op, which is not wholly posted. -FI_ENOKEY: what was
	 * known of its keys has changed; -FI_EAGAIN: try again when its parts in flight
	 * are back; any other error is the device's.
	 */
	int (*post)(struct mrf_peer *peer, struct mrf_op *op);
	/*
	 * The next bytes are in memory of a device at the peer: changes op's type. NULL: there can be
	 * none.
	 */
	int (*staged)(struct mrf_peer *peer, struct mrf_op *op);
	/*
	 * What is not done will be posted again; nothing of op is out. NULL: that needs no
	 * preparation.
	 */
	void (*again)(struct mrf_ep *ep, struct mrf_op *op);
	/*
	 * Everything is done: copies the results to the application's buffers, which may
	 * have to be read in first; called without ep->lock, once more if it returns -FI_EAGAIN:
	 * without may_wait, a buffer is not there yet.
	 * -FI_ECANCELED: a region that they belong in is closed; -FI_EFAULT: a buffer is
	 * not mapped. NULL: the data are in op->local.copy or already in place.
	 */
	int (*deliver)(struct mrf_ep *ep, struct mrf_op *op, bool may_wait);
	/*
	 * The target says that the frame of op came, although its line was lost since. NULL: so op is
	 * done.
	 */
	void (*came)(struct mrf_peer *peer, struct mrf_op *op);
	/* All bytes are done: changes op to its next type, and queues it. NULL: op completes. */
	void (*done)(struct mrf_peer *peer, struct mrf_op *op);
	/*
	 * The posted part of op has come back, and more may have to be posted: looks at the results,
	 * which may show that everything is done. NULL: there are no results to look at.
	 */
	void (*back)(struct mrf_peer *peer, struct mrf_op *op);
};

/* Kind ATOMIC. */
struct mrf_op_atomic {
	uint8_t family; /* enum mrf_atomic_family */
	uint8_t datatype;
	uint8_t op;
	uint8_t size;	    /* bytes of an element */
	bool native;	    /* the device can do it at an aligned address */
	uint8_t stored;	    /* a bit per rma entry: a request has stored something there */
	bool landed;	    /* results have come or will come back into cells */
	uint8_t swaps;	    /* how often it may still be tried by compare-and-swap */
	bool swapping;	    /* such a try is in flight */
	uint64_t collected; /* how far results have been copied out of them */
	uint64_t guess;	    /* what the word should hold for the try to succeed */
};

/* What happened to the operation on connections that broke, and what follows from that: fate.h. */
struct mrf_op_broken {
	bool posted;	  /* was posted once and flushed; may have run */
	bool counted;	  /* in timeouts: the connection that has just broken */
	uint8_t timeouts; /* how often nobody has answered */
	bool disowned;	  /* the peer may carry out requests whose replies nobody awaits */
	uint16_t refused; /* how often the target's kernel refused it */
};

/* What an operation waits for at the front of its queue; tx/order.h. */
enum {
	MRF_FENCE_ALONE = 1 << 0, /* until nothing else is in flight on its connection */
	MRF_FENCE_ALL = 1 << 1,	  /* until all that came before it has ended, on both connections */
	MRF_FENCE_MATED = 1 << 2, /* it has a mate */
	MRF_FENCE_MARK = 1 << 3,  /* it is a mark */
	MRF_FENCE_SYNC = 1 << 4	  /* ... that waits for nothing; or was one, and is a sync now */
};

/* Data that a write carries to the peer's application. */
struct mrf_op_imm {
	bool has;
	bool posted;
	uint32_t data;
};

struct mrf_op {
	/* in peer->queue, redo or chores.list, or ep->drops or free_ops */
	struct mrf_list node;
	struct mrf_peer *peer;
	unsigned number; /* unique in its endpoint, < MRF_EP_ALL_OPS; immutable */
	/* from here to local.sge: see mrf_op_reset */
	const struct mrf_op_type *type;
	/* The account (account.h) is from here to acked. What is out; 0: nothing, */
	union {
		uint64_t out;
		struct {
			uint8_t inflight;    /* work requests posted and not completed */
			uint8_t awaiting;    /* requests to the peer's agent without a reply */
			uint8_t chore;	     /* 1: a thread is at its buffers */
			uint8_t doubt;	     /* enum mrf_wc_status, not OK: in doubt (tx/fail.h) */
			uint8_t undelivered; /* 1: the target has not said that it has it */
			uint8_t offered;     /* 1: the target has not had all that it wants of it */
		};
	};
	/* what follows when nothing is out; 0: it ends if all is done, */
	union {
		uint32_t next;
		struct {
			bool failed; /* it ends with why; or has ended, and is in chores.list */
			bool again;  /* what is not done is posted again */
			bool queued; /* in peer->queue or peer->redo: it is looked at again */
		};
	};
	/* what the target has heard of it, and what is posted and done */
	bool told; /* the target counts it: must never be done twice */
	struct mrf_op_imm imm;
	uint64_t total;
	uint64_t pos;
	uint64_t acked;
	uint8_t fence;	     /* MRF_FENCE_*: before its first byte is posted */
	bool silent;	     /* no completion when it succeeds */
	bool uses;	     /* its regions are counted: buf/uses.h */
	bool plain;	     /* all that its success takes is an entry in tx_cq, and counters */
	bool ask_first;	     /* even a key that carries its rkey must be resolved */
	bool resolved;	     /* all keys known good; holds until the next requeue */
	uint8_t empty_known; /* a bit per rma entry: empty, and allowed by an answer */
	bool behind;	     /* when it began, others were under way */
	bool unfit;	     /* its bytes could not be copied before its turn came */
	struct mrf_op_broken broken;
	union {
		uint64_t gen; /* of its peer, from mrf_entry_begin to mrf_entry_start */
		struct {
			/*
			 * doubt: its packets (PSN), or SEND, posted: its frame's number; to is not one of
			 * them
			 */
			uint32_t from, to;
		} psn;
	};
	uint64_t stamp;	     /* only an answer asked for since then may refuse it */
	uint64_t comp_flags; /* of its completion; FI_READ: counted as a read */
	union {
		struct mrf_op_atomic atomic;
		struct {
			bool cq_data; /* it carries imm.data */
			bool tagged;
			bool delivers; /* it completes when the target has it: tx/delivery.h */
			bool resumes;  /* offered: the next grant says where to go on */
			uint64_t tag;
			/* undelivered or offered: in the peer's list of that name */
			struct mrf_list await;
		} send; /* kind SEND */
	};
	void *context;
	int nrma;
	struct mrf_local local; /* where its bytes are on this side */
	union {
		struct fi_rma_iov rma[MRF_LIMIT_RMA_IOV];
		struct mrf_why why; /* failed */
		uint64_t offer;	    /* offered: the number of its frame */
	};
	struct mrf_op *mate; /* with MRF_FENCE_MATED */
};

#define MRF_OP_RESET (offsetof(struct mrf_op, local.sge) - offsetof(struct mrf_op, type))

_Static_assert(MRF_OP_RESET >= 128 && MRF_OP_RESET <= 192, "see mrf_op_reset");

/*
 * Cleared in pieces short enough for compilers to use register stores: a loop over all of
 * it takes twice as long.
 */
static inline void mrf_op_reset(struct mrf_op *op)
{
	uint8_t *at = (uint8_t *)op + offsetof(struct mrf_op, type);

	memset(at, 0, 64);
	memset(at + 64, 0, 64);
	memset(at + 128, 0, MRF_OP_RESET - 128);
}

/* The arguments of a data transfer call, from any entry of fi_ops_rma or of fi_ops_msg that sends. */
struct mrf_req {
	const struct mrf_op_type *type;
	const struct iovec *iov;
	void **desc; /* NULL, or one per iov */
	size_t count;
	const struct fi_rma_iov *rma;
	size_t rma_count; /* 0: a message */
	fi_addr_t addr;
	void *context;
	uint64_t data;
	bool tagged; /* a message with a tag */
	uint64_t tag;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE ... */
	bool silent;	/* of a call that injects: no completion when it succeeds */
};

/* Of a peer's list undelivered or offered. */
static inline struct mrf_op *mrf_op_awaiting(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_op, send.await);
}

/* Takes op out of peer->queue or peer->redo; ep->lock is held. */
static inline void mrf_op_leave_locked(struct mrf_op *op)
{
	mrf_list_del(&op->node);
	op->queued = false;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from and to memory of devices, for long messages. Their bytes go by way of memory that an
 * origin (landing.h) or a peer (tx/lift.h) has for all of its messages, while any of them are on the
 * way: a message that waits for the other side holds nothing. A copy takes as long as the device
 * does, so that jobs make it, a few at a time for each endpoint; if there is no thread for one, who
 * makes progress does.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_COPIES_H
#define MRF_EP_MSG_COPIES_H

#include <stdint.h>
#include "buf/stage_ring.h"
#include "ep/model/why.h"
#include "loop/job.h"

struct mrf_inbox;
struct mrf_local;

enum mrf_copy_kind {
	MRF_COPY_BYTES, /* of a message that is kept apart */
	MRF_COPY_RING	/* makes the memory by way of which they go */
};

/* It belongs to its starter, and is busy until `over` is called. */
struct mrf_copy {
	struct mrf_list node; /* in copies->waiting or ringless; or a thread is at it */
	enum mrf_copy_kind kind;
	/* why: NULL, it is done. ep->lock is held. */
	void (*over)(struct mrf_copy *copy, const struct mrf_why *why);
	const struct mrf_local *local; /* BYTES */
	uint64_t from, len;
	void *host;
	struct mrf_stage_pool *pool; /* RING: for this pool */
	struct mrf_stage_ring *ring; /* what was made */
};

#define MRF_COPIERS 2

struct mrf_copier {
	struct mrf_copies *copies;
	struct mrf_job job;
	bool busy; /* until the job is over */
};

/* Of an inbox. */
struct mrf_copies {
	struct mrf_inbox *inbox;
	struct mrf_list waiting;  /* struct mrf_copy.node, */
	unsigned nwaiting;	  /* so many; */
	unsigned called;	  /* jobs that have not begun with them yet */
	struct mrf_list ringless; /* the same: until a ring is given back */
	struct mrf_copier copier[MRF_COPIERS];
};

void mrf_copies_init(struct mrf_inbox *inbox);

/* Its fields but node are filled in. */
void mrf_copies_add_locked(struct mrf_copies *copies, struct mrf_copy *copy);
/* True: it had not begun, and will not; over is not called. */
bool mrf_copies_drop_locked(struct mrf_copies *copies, struct mrf_copy *copy);
/*
 * A ring of buf.going or buf.coming. Whoever has one of these goes on by himself, but both in one pool
 * could wait for each other, at two endpoints that have one ring each. NULL: none is free; it has to be
 * made, as a copy of kind RING.
 */
struct mrf_stage_ring *mrf_copies_ring_locked(struct mrf_copies *copies,
					      struct mrf_stage_pool *pool);
void mrf_copies_give_ring_locked(struct mrf_copies *copies, struct mrf_stage_pool *pool,
				 struct mrf_stage_ring *ring);

/* Does a copy wait that may begin? */
bool mrf_copies_may_begin_locked(const struct mrf_copies *copies);
/* Has jobs do them. The lock is left meanwhile. */
void mrf_copies_go_locked(struct mrf_copies *copies);

#endif

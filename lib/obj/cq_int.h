/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/obj: the structure of a completion queue. The ring is written in cq.c and
 * read in cq_read.c.
 */
#ifndef MRF_OBJ_CQ_INT_H
#define MRF_OBJ_CQ_INT_H

#include <stdatomic.h>
#include "obj/cq.h"

struct mrf_cq_slot {
	struct mrf_comp comp;
	struct mrf_comp_err *err; /* owned; NULL: a completion */
};

struct mrf_cq {
	struct fid_cq fid;
	struct mrf_obj obj;
	struct mrf_wait wait;
	size_t entry_size;     /* of the format; immutable */
	bool threshold;	       /* FI_CQ_COND_THRESHOLD; immutable */
	bool fixed;	       /* it does not grow; immutable */
	uint32_t api_version;  /* immutable */
	atomic_size_t pending; /* entries that a read would find; changed under lock */

	struct mrf_lock lock; /* rank CQ: guards all below */
	struct mrf_cq_slot *ring;
	size_t mask;		    /* slots - 1; a power of two minus one */
	size_t head;		    /* next to read; counts up for ever */
	size_t tail;		    /* next to write */
	size_t nerr;		    /* errors between head and tail */
	size_t lost;		    /* completions without a slot; not 0: overrun */
	struct mrf_list lent;	    /* struct mrf_comp_err.lent; <= 1 per thread */
	struct mrf_comp_err *spare; /* for an error without memory; NULL: in use */
	struct mrf_comp_err overrun;
	unsigned sreads;   /* threads in a blocking read */
	unsigned signals;  /* fi_cq_signal calls so far */
	bool signal_waits; /* signal without a blocked thread: for the next read */
};

static inline struct mrf_cq *mrf_cq_of(struct fid_cq *fid)
{
	return mrf_container_of(fid, struct mrf_cq, fid);
}

/* The number of entries in the ring; cq->lock is held. */
static inline size_t mrf_cq_used_locked(const struct mrf_cq *cq)
{
	mrf_lock_held(&cq->lock);
	return cq->tail - cq->head;
}

static inline struct mrf_cq_slot *mrf_cq_slot_at(const struct mrf_cq *cq, size_t pos)
{
	return &cq->ring[pos & cq->mask];
}

/* Shows readers without the lock how many entries there are; cq->lock is held. */
static inline void mrf_cq_publish_locked(struct mrf_cq *cq)
{
	mrf_lock_held(&cq->lock);
	atomic_store_explicit(&cq->pending, mrf_cq_used_locked(cq) + !!cq->lost,
			      memory_order_release);
}

/* --- cq_read.c -------------------------------------------------------------------- */

/*
 * Frees an error that is no longer used (or NULL), or keeps it as the spare if there is none.
 * The caller holds cq->lock.
 */
void mrf_cq_spare_locked(struct mrf_cq *cq, struct mrf_comp_err *err);

/* The table for fid.ops. */
extern struct fi_ops_cq mrf_cq_ops;

#endif

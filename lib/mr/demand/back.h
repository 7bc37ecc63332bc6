/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind a region that is pinned on demand: its bytes as peers count them, and
 * the pieces of them that are pinned at the moment.
 *
 * A pin is a kernel MR over part of the region, with exactly the region's rights. It is
 *   kept    until the memory changes: the monitor watches it, or, under FI_MR_MMU_NOTIFY,
 *	     fi_mr_refresh says so;
 *   leased  to one peer for the accesses that it has begun, where nobody would tell.
 *
 * A backing is allocated apart from its region and counted: the agent takes a reference
 * under space->lock, with which it may pin while fi_close runs. All that changes in it is
 * guarded by the monitor's lock, under which nothing is allocated, freed or registered;
 * only when the monitor says drop kernel MRs are revoked there.
 *
 * Of a region that is faced (mr/face.h) nothing is pinned through its own backing; each
 * face has one with its own pins, and what they have in common is the region's.
 */
#ifndef MRF_MR_DEMAND_BACK_H
#define MRF_MR_DEMAND_BACK_H

#include <stdatomic.h>
#include "monitor/monitor.h"
#include "mr/region.h"
#include "mr/demand/spans.h"

/* A run of bytes that are consecutive for peers and in memory. Immutable. */
struct mrf_extent {
	uint64_t pos;  /* as peers say it: offset, or address with FI_MR_VIRT_ADDR */
	uint64_t addr; /* in this process */
	uint64_t len;
};

struct mrf_mr_back {
	atomic_uint refs; /* the region, who pins for it, leased pins */
	struct mrf_mr_space *space;
	struct mrf_mr_back *master;  /* the region's: itself, or held */
	struct mrf_mr_class *class;  /* held; where pins are made; NULL: space->pd */
	unsigned rights; /* enum mrf_right */
	bool notify;	 /* FI_MR_MMU_NOTIFY: refreshed counts, not the monitor */
	/* guarded by the monitor's lock */
	bool closed;
	uint64_t clock;		    /* goes up with each refresh, and when it is closed */
	struct mrf_list making;	    /* struct mrf_pin.node: the kernel is pinning them */
	struct mrf_list pins;	    /* struct mrf_pin.node: kept, by pos */
	struct mrf_list leased;	    /* struct mrf_pin.node */
	/* the master's: addresses; written with space->lock held, too */
	struct mrf_spans refreshed;
	/* immutable; by pos, not overlapping; one of no bytes if the region has none */
	unsigned nextent;
	const struct mrf_extent *extent; /* the master's */
	struct mrf_extent own[];
};

/* For segs of a region, with one reference. NULL: no memory. */
struct mrf_mr_back *mrf_mr_back_new(struct mrf_mr_space *space, unsigned rights,
				    const struct mrf_mr_seg *segs, unsigned nseg);
/* For another class of peers, with one reference. NULL: no memory. */
struct mrf_mr_back *mrf_mr_back_face(struct mrf_mr_back *master,
				     struct mrf_mr_class *class, unsigned rights);
void mrf_mr_back_get(struct mrf_mr_back *back);
/* space->lock not held. */
void mrf_mr_back_put(struct mrf_mr_back *back);

#endif

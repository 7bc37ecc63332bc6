/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backing of a region that is pinned on demand: its bytes as peers address them, and
 * the parts that are pinned at the moment.
 *
 * A pin is a kernel MR over part of the region, with exactly the region's rights. It is
 *   kept    until the memory changes, as reported by the monitor or, under
 *	     FI_MR_MMU_NOTIFY, by fi_mr_refresh;
 *   leased  to one peer for the accesses that it has begun, where no change is reported.
 *
 * A backing is allocated apart from its region and has a reference count: with a
 * reference, taken under space->lock, the agent may pin while fi_close runs. Everything
 * that changes in a backing is guarded by the monitor's lock, under which nothing is
 * allocated, freed or registered; kernel MRs are revoked under it only when the monitor
 * reports a change.
 *
 * A faced region (mr/face.h) pins nothing through its own backing; each face has a
 * backing with pins of its own, and shares the rest with the region's backing, its
 * master.
 */
#ifndef MRF_MR_DEMAND_BACK_H
#define MRF_MR_DEMAND_BACK_H

#include <stdatomic.h>
#include "monitor/monitor.h"
#include "mr/region.h"
#include "mr/demand/spans.h"

/* A run of bytes that are consecutive for peers and in memory. Immutable. */
struct mrf_extent {
	uint64_t pos;  /* as peers see it: offset, or address with FI_MR_VIRT_ADDR */
	uint64_t addr; /* in this process */
	uint64_t len;
};

struct mrf_mr_back {
	atomic_uint refs; /* by the region, threads that pin for it, leased pins */
	struct mrf_mr_space *space;
	struct mrf_mr_back *master; /* the region's own backing: this one, or held */
	struct mrf_mr_class *class; /* held; pins are made in its pd; NULL: space->pd */
	unsigned rights;	    /* enum mrf_right */
	bool notify;		    /* FI_MR_MMU_NOTIFY: refreshed decides, not the monitor */
	uint64_t key;		    /* that peers ask for; set by the agent before the first pin */
	/*
	 * The agent's: the page that it leased last because it could not keep a pin there, how often
	 * in a row, and what the changes of mappings (base/known.h) were then.
	 */
	uint64_t leased_at;
	unsigned leases;
	uint64_t leased_when;
	/* guarded by the monitor's lock */
	bool closed;
	uint64_t clock;		/* goes up with each refresh, and when it is closed */
	struct mrf_list making; /* struct mrf_pin.node: the kernel is pinning them */
	struct mrf_itree pins;	/* struct mrf_pin.place: kept, by pos */
	struct mrf_list leased; /* struct mrf_pin.node */
	/* used in the master only: addresses; written with space->lock held, too */
	struct mrf_spans refreshed;
	/* immutable; by pos, not overlapping; one of no bytes if the region has none */
	unsigned nextent;
	const struct mrf_extent *extent; /* the master's */
	struct mrf_extent own[];
};

/* Makes a backing for a region's segs, with one reference. NULL: no memory. */
struct mrf_mr_back *mrf_mr_back_new(struct mrf_mr_space *space, unsigned rights,
				    const struct mrf_mr_seg *segs, unsigned nseg);
/* Makes a backing for another class of peers, with one reference. NULL: no memory. */
struct mrf_mr_back *mrf_mr_back_face(struct mrf_mr_back *master, struct mrf_mr_class *class,
				     unsigned rights);
void mrf_mr_back_get(struct mrf_mr_back *back);
/* Drops a reference. space->lock not held. */
void mrf_mr_back_put(struct mrf_mr_back *back);

/*
 * The pages that exist when a region is created, under FI_MR_MMU_NOTIFY. fi_mr(3) says
 * that the application announces pages before peers reach them, and that it has to do so
 * only if pages may have changed since the region was created. Both hold if pages that
 * have memory at that moment count as refreshed and others do not, even if they get
 * memory later, because that is a change.
 *
 * So the call that creates the region looks at its pages once, even if the region is
 * enabled later or registered asynchronously. Looking at the first access would be
 * cheaper, but would also find pages that came later. Under FI_MR_ALLOCATED all pages
 * have to exist, and there is no need to look.
 *
 * Sets refreshed of a new backing, if it has notify. -FI_ENOMEM.
 */
int mrf_mr_back_present(struct mrf_mr_back *back);

#endif

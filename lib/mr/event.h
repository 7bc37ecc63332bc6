/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of regions. */
#ifndef MRF_MR_EVENT_H
#define MRF_MR_EVENT_H

#include <rdma/fabric.h>
#include "base/list.h"

struct mrf_cntr;
struct mrf_mr;
struct mrf_mr_port;
struct mrf_mr_space;

/*
 * Part of a region whose writes by peers are counted; allocated; guarded by space->lock.
 */
struct mrf_mr_event {
	struct mrf_mr *mr;
	uint32_t number;	  /* in space->events; never 0 */
	struct mrf_list counters; /* struct mrf_mr_binding.mine */
};

/* Gives the region a number; the caller holds space->lock. -FI_ENOMEM. */
int mrf_mr_event_open_locked(struct mrf_mr *mr);
/*
 * Takes the number back, if the region has one, without regard to counters; the caller
 * holds space->lock.
 */
void mrf_mr_event_drop_locked(struct mrf_mr *mr);
/*
 * -FI_EBUSY: counters have to be closed before the region (logged); the caller holds
 * space->lock.
 */
int mrf_mr_event_busy_locked(const struct mrf_mr *mr);
/*
 * The region is being closed, and the kernel lets nobody access it any more: counts the
 * writes that came before, then unbinds the counters. No lock held.
 */
void mrf_mr_event_close(struct mrf_mr *mr);
int mrf_mr_bind_cntr(struct mrf_mr *mr, struct fid *cntr, uint64_t flags);

/*
 * From now on cntr counts peers' writes through the endpoint at port to regions that have
 * numbers. cntr outlives the port. Called at most once per port.
 */
void mrf_mr_port_count(struct mrf_mr_space *space, struct mrf_mr_port *port, struct mrf_cntr *cntr);

/*
 * A peer's operation through the endpoint at port has modified the region with this
 * number: the region's counters and the port's counter count it. A number that no region
 * has, which a peer may make up, counts nothing. Agent thread.
 */
void mrf_mr_event(struct mrf_mr_space *space, uint32_t number, const struct mrf_mr_port *port);

#endif

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

/* Of a region to which peers' writes are counted; allocated; guarded by space->lock. */
struct mrf_mr_event {
	struct mrf_mr *mr;
	uint32_t number; /* in space->events; never 0 */
	struct mrf_list counters; /* struct mrf_mr_meter.mine */
};

/* Gives the region a number; the caller holds space->lock. -FI_ENOMEM. */
int mrf_mr_event_open(struct mrf_mr *mr);
/* Takes it back, if it has one, without a look at counters; likewise. */
void mrf_mr_event_drop(struct mrf_mr *mr);
/* -FI_EBUSY: counters have to be closed before the region (logged); likewise. */
int mrf_mr_event_busy(const struct mrf_mr *mr);
/*
 * The region is being closed, and the kernel lets nobody through any more: counts what was
 * written before, then lets go of the counters. No lock held.
 */
void mrf_mr_event_close(struct mrf_mr *mr);
int mrf_mr_bind_cntr(struct mrf_mr *mr, struct fid *cntr, uint64_t flags);

/*
 * From now on cntr counts what peers write through the endpoint at port, as far as the
 * regions have numbers. It outlives the port. Once.
 */
void mrf_mr_port_count(struct mrf_mr_space *space, struct mrf_mr_port *port,
		       struct mrf_cntr *cntr);

/*
 * A peer's operation through the endpoint at port has modified the region that has this
 * number: its counters and the port's count it. Numbers that peers made up count nothing. Agent thread.
 */
void mrf_mr_event(struct mrf_mr_space *space, uint32_t number,
		  const struct mrf_mr_port *port);

#endif

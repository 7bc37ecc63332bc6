/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of devices at the target. A peer that asks about such a region gets a ring: registered
 * memory of ours that it reads and writes by RDMA, over its connection only. Its requests have
 * bytes copied between the ring and the region, by a job (loop/job.h). Agent thread.
 */
#ifndef MRF_EP_RX_STAGE_SERVE_H
#define MRF_EP_RX_STAGE_SERVE_H

#include "ep/rx/work.h"

/* Of one connection, and of the job that is at one of its requests. */
struct mrf_ring {
	unsigned holds;
	uint8_t *memory;
	struct mrf_vmr mr; /* gone when the connection is */
};

/*
 * The rkey of the connection's ring, which is made when there is none yet. 0: there is no room
 * for one.
 */
uint32_t mrf_ring_rkey(struct mrf_passive *passive);
/* The connection has ended: nobody reaches its ring any more. Harmless if there is none. */
void mrf_ring_leave(struct mrf_passive *passive);
/* A job is over. Harmless with NULL. */
void mrf_ring_put(struct mrf_ring *ring);
/*
 * Holds the bytes that the request is about, in work->commit, if peers have this right. False:
 * *ret is what serving it is to return, and reply says why.
 */
bool mrf_stage_hold(struct mrf_ep *ep, const struct mrf_request *request, uint64_t right,
		    struct mrf_work *work, struct mrf_reply *reply, int *ret);
/* As mrf_commit_serve, for a request of type STAGE. */
int mrf_stage_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		    struct mrf_work *work);

#endif

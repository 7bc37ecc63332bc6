/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to copy bytes between the ring of a connection (rx/ring.h) and a region with memory of a
 * device, which jobs do (loop/job.h). Agent thread.
 */
#ifndef MRF_EP_RX_STAGE_SERVE_H
#define MRF_EP_RX_STAGE_SERVE_H

#include "ep/rx/ring.h"
#include "ep/rx/work.h"

/*
 * Holds the bytes that the request is about, in work->places, if peers have this right. False:
 * *ret is what serving it is to return, and reply says why.
 */
bool mrf_stage_hold(struct mrf_ep *ep, const struct mrf_request *request, uint64_t right,
		    struct mrf_work *work, struct mrf_reply *reply, int *ret);
/* As mrf_commit_serve, for a request of type STAGE. */
int mrf_stage_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		    struct mrf_work *work);

#endif

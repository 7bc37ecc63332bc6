/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's half of FI_COMMIT_COMPLETE. Agent thread. */
#ifndef MRF_EP_RX_COMMIT_SERVE_H
#define MRF_EP_RX_COMMIT_SERVE_H

#include "ep/rx/work.h"

/*
 * As mrf_atomic_serve, for a request of type FLUSH; a flush is a job, because storage may take any
 * time. work->job.over is the caller's.
 */
int mrf_commit_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		     uint8_t *body, struct mrf_work *work);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_COMMIT_COMPLETE: a write that is done when its bytes are persistent at the peer.
 *
 *	MSG check --> WRITE --> MSG flush --> done
 *
 * First the peer's agent is asked whether the region is persistent memory, so that
 * nothing is written if it is not; after the write has been acknowledged the agent is
 * asked to flush. ep->lock held, except for mrf_commit_serve.
 */
#ifndef MRF_EP_COMMIT_H
#define MRF_EP_COMMIT_H

#include "ep/rpc.h"

/* mrf_request.what of a request of type FLUSH */
#define MRF_FLUSH_CHECK 0
#define MRF_FLUSH_DO 1

/* Makes a new operation, which is a write, begin with the check. */
void mrf_commit_begin(struct mrf_op *op);

/* The target's side of requests of type FLUSH. */
int mrf_commit_serve(struct mrf_ep *ep, const struct mrf_request *request,
		     struct mrf_reply *reply, uint8_t *body);

#endif

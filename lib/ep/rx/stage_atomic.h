/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations on memory of devices: a job gets the elements, changes them, and puts them
 * back, one such job of the process at a time. So they are atomic with each other, but neither
 * with what the device does itself nor with reads and writes of peers.
 */
#ifndef MRF_EP_RX_STAGE_ATOMIC_H
#define MRF_EP_RX_STAGE_ATOMIC_H

#include "ep/rx/work.h"

/* As mrf_commit_serve, for a request of type ATOMIC with MRF_ATOMIC_WHAT_STAGED. */
int mrf_stage_atomic_serve(struct mrf_ep *ep, const struct mrf_request *request,
			   struct mrf_reply *reply, uint8_t *body, struct mrf_work *work);

#endif

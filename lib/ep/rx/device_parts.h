/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that requests of the types BYTES and STAGE ask for, between memory of the host and a region
 * with memory of a device. As many as stand together in a message, and whose bytes have come, are one
 * job; those about adjacent bytes are one copy. The bytes of BYTES are in the messages, those of STAGE
 * in staging memory (rx/staging.h). Agent thread.
 */
#ifndef MRF_EP_RX_DEVICE_PARTS_H
#define MRF_EP_RX_DEVICE_PARTS_H

#include "ep/rx/work.h"

/* Begins the request, and those behind it that go with it. Returns as mrf_atomic_serve. */
int mrf_parts_begin(struct mrf_work *work, const struct mrf_request *request);
/* Was the request whose turn it is done by the job that is over? */
static inline bool mrf_parts_are_left(const struct mrf_work *work)
{
	return work->told < work->nparts;
}

/* What became of it: work->err and work->results. */
void mrf_parts_take(struct mrf_work *work, const struct mrf_request *request);
/*
 * The request is over, and work->reply is set. One of type STAGE has one SEND, whatever became of it:
 * its place is free, or the bytes go to the peer. Harmless for others. Returns 0 or -FI_ECONNABORTED.
 */
int mrf_parts_end(struct mrf_work *work, const struct mrf_request *request);
/*
 * The request is not done, because it is not the next: ends it all the same. Returns as
 * mrf_atomic_serve.
 */
int mrf_parts_skip(struct mrf_work *work, const struct mrf_request *request);

#endif

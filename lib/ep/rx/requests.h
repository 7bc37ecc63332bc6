/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serving messages of requests (proto/proto.h). Each request is done once, in the order of their
 * turns, however long it takes. Agent thread, no lock held.
 */
#ifndef MRF_EP_RX_REQUESTS_H
#define MRF_EP_RX_REQUESTS_H

#include "ep/rx/work.h"

/* Returns how many requests are in a message. Malformed requests are found when they are served. */
unsigned mrf_requests_in(const uint8_t *msg, size_t len);
/*
 * Serves the connection's message of requests in this slot, or carries on with it. -FI_EAGAIN: it
 * needs another turn, because of its length, for want of memory, or when a job is over. Other
 * errors end the connection.
 */
int mrf_requests_serve(struct mrf_passive *passive, unsigned slot, size_t len);
/* The connection is about to be freed. */
void mrf_requests_leave(struct mrf_passive *passive);
/* Called when no connection and no job is left. */
void mrf_requests_fini(struct mrf_eps *eps);

#endif

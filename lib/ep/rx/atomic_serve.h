/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations that peers ask for. Agent thread. */
#ifndef MRF_EP_RX_ATOMIC_SERVE_H
#define MRF_EP_RX_ATOMIC_SERVE_H

#include "ep/rx/work.h"

struct mrf_atomic_loop; /* carries out peers' atomic operations */

/*
 * Carries out a request of type ATOMIC, or the rest of it: work->reply says what has been done,
 * which is nothing at first, with status DONE. The function writes the reply's body, of at most
 * MRF_PROTO_REPLY_BODY bytes, to its place and sets body_len. MRF_SERVE_LATER: none of MRF_SWAPS is
 * left in this turn (work->swaps), and the function is to be called again in the next one.
 * Negative: the request is malformed, and the connection is ended.
 */
int mrf_atomic_serve(struct mrf_work *work, const struct mrf_request *request);
/* Is it such a request, with a body as long as it has to be? */
bool mrf_atomic_understood(const struct mrf_request *request);
/* Agent thread, before the endpoint is freed. */
void mrf_atomic_loop_close(struct mrf_ep *ep);

#endif

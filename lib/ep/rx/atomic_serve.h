/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations that peers ask for. Agent thread. */
#ifndef MRF_EP_RX_ATOMIC_SERVE_H
#define MRF_EP_RX_ATOMIC_SERVE_H

#include "ep/rx/work.h"

struct mrf_atomic_loop; /* carries out peers' atomic operations */

/*
 * Carries out a request of type ATOMIC, or the rest of it: reply says what has been done, which is
 * nothing at first, with status DONE. The function writes the reply's body, of at most
 * MRF_PROTO_REPLY_BODY bytes, to body and sets body_len. swaps: how many of MRF_SWAPS have been used
 * up in this turn. MRF_SERVE_LATER: none is left, and the function is to be called again in the next
 * turn. Negative: the request is malformed, and the connection is ended.
 */
int mrf_atomic_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		     uint8_t *body, unsigned *swaps);
/* Is it such a request, with a body as long as it has to be? */
bool mrf_atomic_understood(const struct mrf_request *request);
/* Agent thread, before the endpoint is freed. */
void mrf_atomic_loop_close(struct mrf_ep *ep);

#endif

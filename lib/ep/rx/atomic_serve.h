/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations that peers ask for. Agent thread. */
#ifndef MRF_EP_RX_ATOMIC_SERVE_H
#define MRF_EP_RX_ATOMIC_SERVE_H

#include "ep/model/ep.h"
#include "proto/request.h"

struct mrf_atomic_loop; /* carries out peers' atomic operations */

/*
 * Carries out a request of type ATOMIC. reply arrives with status DONE and nothing done;
 * the function writes the reply's body, of at most MRF_PROTO_REPLY_BODY bytes, to body
 * and sets body_len. Nonzero: the request is malformed, and the connection is ended.
 */
int mrf_atomic_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		     uint8_t *body);
/* Agent thread, before the endpoint is freed. */
void mrf_atomic_loop_close(struct mrf_ep *ep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_EP_RX_REQUEST_H
#define MRF_EP_RX_REQUEST_H

#include <stdint.h>
#include "ep/model/ep.h"
#include "proto/request.h"

/*
 * The target's side: the functions that carry out requests, by type; NULL: the type is
 * not known here. Agent thread, no lock held. reply arrives with status DONE and nothing
 * done; the function writes the reply's body, of at most MRF_PROTO_REPLY_BODY bytes, to
 * body and sets body_len. Nonzero: the request is malformed, and the connection is ended.
 * Tests add types of their own.
 */
#define MRF_REQUEST_TYPES 16

extern int (*mrf_request_serve[MRF_REQUEST_TYPES])(struct mrf_ep *ep,
						   const struct mrf_request *request,
						   struct mrf_reply *reply, uint8_t *body);

#endif

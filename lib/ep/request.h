/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_EP_REQUEST_H
#define MRF_EP_REQUEST_H

#include <stdint.h>
#include "ep/ep.h"
#include "proto/request.h"

/*
 * The target's side: how requests are carried out, by type; NULL: not known here. Agent
 * thread, no lock held. reply comes with status DONE and nothing done; its body, of at most
 * MRF_PROTO_REPLY_BODY bytes, is to be written to body, and body_len set. Nonzero: the
 * request is malformed, and the connection ends. Tests add types of their own.
 */
#define MRF_REQUEST_TYPES 16

extern int (*mrf_request_serve[MRF_REQUEST_TYPES])(struct mrf_ep *ep,
						   const struct mrf_request *request,
						   struct mrf_reply *reply, uint8_t *body);

#endif

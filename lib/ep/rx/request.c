/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the agent, the target's half: who carries out which request. */
#include "ep/rx/atomic_serve.h"
#include "ep/rx/commit_serve.h"
#include "ep/rx/request.h"

int (*mrf_request_serve[MRF_REQUEST_TYPES])(struct mrf_ep *ep, const struct mrf_request *request,
					    struct mrf_reply *reply, uint8_t *body) = {
	[MRF_MSG_ATOMIC] = mrf_atomic_serve,
	[MRF_MSG_FLUSH] = mrf_commit_serve,
};

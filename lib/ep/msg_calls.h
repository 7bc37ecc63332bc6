/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_msg(3) and fi_tagged(3) have in common: all checks of arguments, and what follows. */
#ifndef MRF_EP_MSG_CALLS_H
#define MRF_EP_MSG_CALLS_H

#include "ep/model/ep.h"
#include "ep/msg/recv.h"
#include "ep/send_short.h"

/* call: its name, for messages. req->flags are those of the call, or mrf_msg_send_flags. */
ssize_t mrf_msg_submit_send(struct fid_ep *fid, const char *call, struct mrf_req *req);
/* Sends one buffer, with the operation flags of the endpoint unless it is injected. */
ssize_t mrf_msg_send_one(struct fid_ep *ep, const char *call, const struct mrf_send_one *one);
ssize_t mrf_msg_submit_recv(struct fid_ep *fid, const char *call, struct mrf_recv_req *req,
			    uint64_t flags);
/* The flags of calls that have none. */
uint64_t mrf_msg_send_flags(struct fid_ep *fid);
uint64_t mrf_msg_recv_flags(struct fid_ep *fid);

#endif

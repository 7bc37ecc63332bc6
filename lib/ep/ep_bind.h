/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding an endpoint to address vectors, queues and counters. */
#ifndef MRF_EP_EP_BIND_H
#define MRF_EP_EP_BIND_H

#include "ep/model/ep.h"

/* fi_ep_bind. */
int mrf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* First half of unbinding: no queue or counter polls the endpoint any more. */
void mrf_ep_unlink_all(struct mrf_ep *ep);
/* Second half: the objects that it was bound to may be closed. */
void mrf_ep_drop_all(struct mrf_ep *ep);

#endif

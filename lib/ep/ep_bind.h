/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint is bound to. */
#ifndef MRF_EP_EP_BIND_H
#define MRF_EP_EP_BIND_H

#include "ep/ep.h"

/* fi_ep_bind. */
int mrf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* The two halves of letting go: first nobody polls it, ... */
void mrf_ep_unlink_all(struct mrf_ep *ep);
/* ... then what it was bound to may close. */
void mrf_ep_drop_all(struct mrf_ep *ep);

#endif

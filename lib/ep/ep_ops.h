/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of an endpoint that have files of their own, most of them in tables. Those of what
 * endpoints of this library do not offer are complete: every call returns -FI_ENOSYS and logs one
 * line that names the call and the capability it would need. Constant and shared by all endpoints;
 * not declared const because libfabric's endpoint structure has pointers without const.
 */
#ifndef MRF_EP_EP_OPS_H
#define MRF_EP_EP_OPS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "ep/model/ep.h"

extern struct fi_ops_ep mrf_ep_ops;
extern struct fi_ops_cm mrf_ep_cm_ops;
extern struct fi_ops_msg mrf_ep_msg_ops;
extern struct fi_ops_tagged mrf_ep_tagged_ops;
extern struct fi_ops_rma mrf_ep_rma_ops;
extern struct fi_ops_atomic mrf_ep_atomic_ops;

extern struct fi_ops_msg mrf_no_msg;
extern struct fi_ops_tagged mrf_no_tagged;
extern struct fi_ops_atomic mrf_no_atomic;
extern struct fi_ops_collective mrf_no_collective;

/* fi_ep_bind. */
int mrf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* First half of unbinding: no queue or counter polls the endpoint any more. */
void mrf_ep_unlink_all(struct mrf_ep *ep);
/* Second half: the objects that it was bound to may be closed. */
void mrf_ep_drop_all(struct mrf_ep *ep);

/* Starts a read or a write, after all checks of fi_rma(3)'s arguments. */
int mrf_rma_submit(struct mrf_ep *ep, const struct mrf_req *req);

#endif

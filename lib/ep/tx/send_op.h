/* SPDX-License-Identifier: BSD-2-Clause */
/* A message as an operation: one frame over the line to its peer; a long one: tx/offer_op.h. */
#ifndef MRF_EP_TX_SEND_OP_H
#define MRF_EP_TX_SEND_OP_H

#include <rdma/fi_tagged.h>
#include "ep/model/peer.h"

extern const struct mrf_op_type mrf_op_send;

/* The most bytes of a message that go with its frame. */
#define MRF_SEND_MAX 16384

/* What a message has beside what every operation has. */
static inline void mrf_send_fill(struct mrf_op *op, bool tagged, uint64_t tag, bool cq_data)
{
	op->comp_flags = (tagged ? FI_TAGGED : FI_MSG) | FI_SEND;
	op->imm.has = true;
	op->send.cq_data = cq_data;
	op->send.tagged = tagged;
	op->send.tag = tag;
}

/*
 * Starts a message whose arguments have been checked: req->rma_count is 0. Errors as
 * mrf_entry_begin and mrf_local_take. No lock is held.
 */
int mrf_send_submit(struct mrf_ep *ep, const struct mrf_req *req);

/*
 * Posts the frame of a message that is filled in, in front of whose data (nsge pieces) sge has room
 * for its head; is_inline: lkeys do not count. The peer is ready, and has a window. -FI_EMSGSIZE,
 * -FI_EOPNOTSUPP: the target does not take it; or the device's errors. ep->lock is held.
 */
int mrf_send_frame_locked(struct mrf_peer *peer, struct mrf_op *op, struct mrf_sge *sge, int nsge,
			  bool is_inline);

#endif

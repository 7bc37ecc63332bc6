/* SPDX-License-Identifier: BSD-2-Clause */
/* What reads and writes have in common, however they go: access_op.h. ep->lock is held. */
#ifndef MRF_EP_TX_RMA_OP_H
#define MRF_EP_TX_RMA_OP_H

#include "ep/model/peer.h"

/*
 * Posts one work request for the bytes from op->pos on, as many as fit into one segment
 * and one message. See mrf_op_type.post.
 */
int mrf_rma_op_post_locked(struct mrf_peer *peer, struct mrf_op *op);
/* Are the bytes up to there the last ones for a region that counts writes? */
bool mrf_rma_is_counted_locked(const struct mrf_op *op, uint64_t upto);
/* Why the peer's agent could not copy: see struct mrf_rpc. */
void mrf_rma_explain_copy(const struct mrf_op *op, int err, struct mrf_why *why);

#endif

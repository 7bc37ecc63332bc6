/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of few bytes of a peer's device memory: the bytes go in the request to its agent, or
 * in the reply. So they take no more round trips than others, and many go together (tx/rpc.h).
 * Longer ones: far_op.h. ep->lock is held.
 */
#ifndef MRF_EP_TX_FEW_OP_H
#define MRF_EP_TX_FEW_OP_H

#include "ep/model/peer.h"

/* May op, nothing of which is posted, go like that? */
bool mrf_few_fits_locked(struct mrf_peer *peer, const struct mrf_op *op);

/* What such an operation becomes. */
extern const struct mrf_op_type mrf_op_few_write, mrf_op_few_read;

#endif

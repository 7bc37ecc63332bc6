/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes as operations. Where the peer has memory of a device, which no RDMA reaches, an
 * operation has another type from then on: the peer's agent has its bytes in a request, or in the reply
 * (few_op.h), or they go over a pair (far_op.h).
 */
#ifndef MRF_EP_TX_ACCESS_OP_H
#define MRF_EP_TX_ACCESS_OP_H

#include "ep/model/peer.h"

extern const struct mrf_op_type mrf_op_read, mrf_op_write;

/*
 * Replies are awaited: if it is known that op will go by a request, too, it has that type from now on, so
 * that it need not wait for them. ep->lock is held.
 */
void mrf_access_joins_locked(struct mrf_peer *peer, struct mrf_op *op);

#endif

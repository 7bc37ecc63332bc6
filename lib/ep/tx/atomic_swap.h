/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An element of 8 bytes for which the device has no operation, changed from here: by a
 * compare-and-swap that expects what the word probably holds, and is tried again with what
 * it found instead. That takes one or two operations of the device, and no agent. Only for
 * an operation that is alone: it keeps everything behind it waiting until it has succeeded,
 * for the order's sake, and requests of several operations share a message, which is
 * cheaper than a swap for each (rpc.h). After a few tries the peer's agent does it, which
 * is nearer to the word. ep->lock held.
 */
#ifndef MRF_EP_TX_ATOMIC_SWAP_H
#define MRF_EP_TX_ATOMIC_SWAP_H

#include "ep/model/atomics.h"
#include "ep/model/peer.h"
#include "ep/resolve/resolve.h"

/* How often the operation may be tried in this way; 0: it is not of this kind. */
uint8_t mrf_atomic_swaps(const struct mrf_atomic_req *req);
/* Should op be tried in this way now? Its next byte goes to this piece. */
bool mrf_atomic_may_swap_locked(const struct mrf_peer *peer, const struct mrf_op *op,
				const struct mrf_piece *piece);
/*
 * Posts a try. -FI_EAGAIN: op waits for it; any other error is the device's.
 */
int mrf_atomic_swap_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_piece *piece);
/* A try has come back: completes op, or has it tried again. For mrf_op_type.back. */
void mrf_atomic_swap_back_locked(struct mrf_peer *peer, struct mrf_op *op);

#endif

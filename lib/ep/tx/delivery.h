/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that complete when their target has taken them (FI_DELIVERY_COMPLETE). The acknowledgement
 * of RC says only that a frame has come into a receive that all lines share. So such a message is out
 * (op->undelivered, in peer->undelivered by op->send.await) from its posting until the target says,
 * in a note or in a frame of the line the other way, that the frame was taken: then its bytes are in
 * the buffer of the receive that it has matched, or, if there was none, among the unexpected messages.
 *
 * If the line is lost before, the message is in doubt (tx/fail.h), as one that was not acknowledged:
 * the next welcome says whether it has come. Its bytes may still be on the way to the buffer then, if
 * that is in memory that is not there yet. With ep->lock held.
 */
#ifndef MRF_EP_TX_DELIVERY_H
#define MRF_EP_TX_DELIVERY_H

#include "ep/model/peer.h"

/* op has been posted to the peer's line. */
void mrf_delivery_await_locked(struct mrf_peer *peer, struct mrf_op *op);
/* The target has said that it has taken peer->line.taken frames: some operations may end. */
void mrf_delivery_told_locked(struct mrf_peer *peer);
/* A work request of op has come back in error: it is not waited for in this way any more. */
void mrf_delivery_unawait_locked(struct mrf_op *op);
/* The line is gone, and nothing is in flight: what was not told is in doubt, and goes to peer->redo. */
void mrf_delivery_doubt_locked(struct mrf_peer *peer);
/* The endpoint closes: what is not in flight goes to peer->redo. */
void mrf_delivery_abandon_locked(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of a peer's device memory whose bytes go over the pair of the connection
 * (link/far.h), up to MRF_PROTO_STAGE of them for each request to the peer's agent. Nobody has a right
 * to the other's memory for that (docs/WIRE.md).
 *
 *   write: the bytes are sent to memory of the host that the peer has ready, and its agent puts them
 *          into the device. They are done when the request is.
 *   read:  the peer's agent gets them from the device, and sends them to where they belong. They are
 *          done when they have come.
 *
 * Several requests are on the way, of several operations, so that bytes are sent while the peer copies
 * others. Fewer bytes: few_op.h. With ep->lock held.
 */
#ifndef MRF_EP_TX_FAR_OP_H
#define MRF_EP_TX_FAR_OP_H

#include "ep/model/peer.h"
#include "verbs/verbs.h"

/* What an operation becomes. */
extern const struct mrf_op_type mrf_op_far_write, mrf_op_far_read;

/* Is the pair ready for more of op, if it needs one? If not, that will change. */
bool mrf_far_lets_locked(struct mrf_peer *peer, struct mrf_op *op);
/* A SEND or a receive has come back. */
void mrf_far_completed_locked(struct mrf_far *far, const struct mrf_wc *wc);
/* The pair is shut, and what had completed was taken in: nothing else comes back. Frees it. */
void mrf_far_lost_locked(struct mrf_conn *conn);
/* The endpoint closes: what was out is out no more, and goes to peer->redo if it was in no list. */
void mrf_far_abandon_locked(struct mrf_peer *peer);
/* Does what the pair of a connection that is READY needs: makes it, or connects it. Agent thread. */
void mrf_far_serve_locked(struct mrf_peer *peer);

#endif

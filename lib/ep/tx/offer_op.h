/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages, and those for whose bytes the target has no room. The message itself is a frame, an
 * offer, which takes its place among the others. When it has matched a receive there, the target asks
 * for its bytes, part by part (a grant), and they go over a pair of their own (link/bulk.h) straight
 * into the receive's buffer. The operation is offered from the frame on, and ends with the last byte;
 * or when the target says that it has had all that it wants, because the receive has room for fewer,
 * or because a receive that is told of all of it was asked for (FI_DELIVERY_COMPLETE).
 *
 * An offer whose line is lost stays offered. The target, which counts frames, knows which offers have
 * come; what it has of their bytes it knows, too. So it asks for the rest over the next line. But it
 * does not keep in mind those that have ended, nor does it know which ones this side has given up: so
 * this side asks about each of its offers, in order, before anything else is done with them.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_TX_OFFER_OP_H
#define MRF_EP_TX_OFFER_OP_H

#include "ep/link/bulk.h"
#include "ep/model/peer.h"

extern const struct mrf_op_type mrf_op_offer;

/*
 * May the frame of a message be posted? One for whose bytes the target has no room becomes an offer, and
 * that waits until the line has its pair.
 */
bool mrf_offer_lets_locked(struct mrf_peer *peer, struct mrf_op *op);
/* The target says something of an offer. False: it cannot be. */
bool mrf_offer_granted_locked(struct mrf_conn *conn, const struct mrf_frame_grant *grant);
/* Bytes that were asked for are posted, and questions, as far as there is room. READY. */
void mrf_offer_advance_locked(struct mrf_peer *peer);
/* A part has come back. */
void mrf_offer_completed_locked(struct mrf_bulk *bulk, const struct mrf_wc *wc);

/* --- agent thread: these leave the lock meanwhile ----------------------------------- */

/* Makes and connects the pair, if that is due. READY. */
void mrf_offer_serve_locked(struct mrf_peer *peer);
/*
 * The line is lost, its pair is shut, and what had completed on it was taken in: the rest goes over the
 * next line.
 */
void mrf_offer_lost_locked(struct mrf_conn *conn);
/* The endpoint closes: what is offered goes to peer->redo. */
void mrf_offer_abandon_locked(struct mrf_peer *peer);

#endif

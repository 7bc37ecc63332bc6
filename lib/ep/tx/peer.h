/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of a peer: posting, completions, progress. ep->lock held, unless a line says
 * otherwise.
 */
#ifndef MRF_EP_TX_PEER_H
#define MRF_EP_TX_PEER_H

#include "ep/model/peer.h"

/*
 * May another operation begin? It may if the endpoint is below its limit, or if the peer
 * has only a few operations. Handles completions first if they may make room.
 */
bool mrf_peer_has_place(const struct mrf_peer *peer);
/* Queues an operation for this peer and posts it when its turn comes. */
void mrf_peer_start(struct mrf_peer *peer, struct mrf_op *op);
/*
 * Ends a waiting operation with this context, of which nothing was ever posted, with
 * FI_ECANCELED. -FI_ENOENT: there is no such operation.
 */
int mrf_peer_cancel(struct mrf_ep *ep, const void *context);
/* Posts what can be posted and asks the questions that are needed. */
void mrf_peer_advance(struct mrf_peer *peer);
/* The device rejected a question with ret (-FI_E*). */
void mrf_peer_no_ask(struct mrf_peer *peer, int ret);
/* Handles all work completions: operations end, and others go on. */
void mrf_ep_progress(struct mrf_ep *ep);
/* Progress when the application reads a queue (mrf_source.poll). Takes ep->lock. */
void mrf_ep_poll(struct mrf_source *source);
/* Handles a work completion of an active connection. */
void mrf_peer_completed(struct mrf_conn *conn, const struct mrf_wc *wc);
/*
 * BROKEN -> IDLE, after the last completion: flushed operations go back to the front of
 * the queue.
 */
void mrf_peer_rewind(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of a peer: posting, completions, progress. ep->lock held, unless a line says
 * otherwise.
 */
#ifndef MRF_EP_TX_PEER_H
#define MRF_EP_TX_PEER_H

#include "ep/model/peer.h"

/*
 * An operation for the peer at this address begins, takes a place, and is the caller's
 * alone until mrf_peer_start. Handles completions first if they may make room. -FI_EAGAIN:
 * the endpoint is at its limit, and the peer has more than a few operations; or as
 * mrf_peer_get_locked and mrf_op_take_locked. Takes ep->lock.
 */
int mrf_peer_begin(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_op **op);
/*
 * Its local buffers are ready: queues op for the peer at this address and posts it when
 * its turn comes. If they could not be made ready, ret says why: frees op and returns
 * ret, as for an address that was removed meanwhile. Takes ep->lock.
 */
int mrf_peer_start(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_op *op, int ret);
/*
 * Ends a waiting operation with this context, of which nothing was ever posted, with
 * FI_ECANCELED. -FI_ENOENT: there is no such operation.
 */
int mrf_peer_cancel_locked(struct mrf_ep *ep, const void *context);
/* Posts what can be posted and asks the questions that are needed. */
void mrf_peer_advance_locked(struct mrf_peer *peer);
/* The device rejected a question with ret (-FI_E*). */
void mrf_peer_no_ask_locked(struct mrf_peer *peer, int ret);
/* Handles all work completions: operations end, and others go on. */
void mrf_ep_progress_locked(struct mrf_ep *ep);
/* Progress when the application reads a queue (mrf_source.poll). Takes ep->lock. */
void mrf_ep_poll(struct mrf_source *source);
/*
 * The device has not completed what is in flight on a broken connection: as if all of it had
 * timed out. What the device completes after that, while the connection is not destroyed yet,
 * is ignored.
 */
void mrf_conn_give_up_locked(struct mrf_conn *conn);
/*
 * BROKEN -> IDLE, after the last completion: flushed operations go back to the front of
 * the queue.
 */
void mrf_peer_rewind_locked(struct mrf_peer *peer);

#endif

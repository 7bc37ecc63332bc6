/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of a peer: posting, completions, progress. ep->lock held, unless a line says
 * otherwise.
 */
#ifndef MRF_EP_TX_PEER_QUEUE_H
#define MRF_EP_TX_PEER_QUEUE_H

#include "ep/model/peer.h"

/* Posts what can be posted and asks the questions that are needed. */
void mrf_peer_advance_locked(struct mrf_peer *peer);
/*
 * The peer's next step depends on completions: whoever starts an operation looks for them, or the
 * agent waits for them.
 */
void mrf_peer_wait_locked(struct mrf_peer *peer);
/* The device rejected a question with ret (-FI_E*). */
void mrf_peer_no_ask_locked(struct mrf_peer *peer, int ret);
/* Handles all work completions: operations end, and others go on. */
void mrf_peer_progress_locked(struct mrf_ep *ep);
/* Progress when the application reads a queue (mrf_source.poll). Takes ep->lock. */
void mrf_peer_poll(struct mrf_source *source);
/*
 * The device has not completed what is in flight on a broken connection: as if all of it had
 * timed out. What the device completes after that, while the connection is not destroyed yet,
 * is ignored.
 */
void mrf_peer_give_up_locked(struct mrf_conn *conn);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to a peer about its regions, its answers, and the leases that come with some
 * answers; ep->lock held.
 */
#ifndef MRF_EP_RESOLVE_ASK_H
#define MRF_EP_RESOLVE_ASK_H

#include "ep/model/peer.h"
#include "ep/resolve/remote.h"

/*
 * Queues a question about these bytes, unless one about the key is already open. once: an
 * answer that is good once is preferred.
 */
void mrf_ask_want_locked(struct mrf_peer *peer, struct mrf_remote *remote, uint64_t addr,
			 uint64_t len, bool once);
/*
 * Sends the queued questions, as far as there is room. Returns 0 or the device's error.
 */
int mrf_ask_send_locked(struct mrf_peer *peer);
/* Handles an answer. True: operations may go on. */
bool mrf_ask_answered_locked(struct mrf_peer *peer, const struct mrf_answer *answer);
/*
 * Withdraws the questions that were not sent yet; an operation that still needs one
 * queues it again.
 */
void mrf_ask_unwant_locked(struct mrf_peer *peer);
/* The connection is gone, and with it all open questions and leases. */
void mrf_ask_lost_locked(struct mrf_peer *peer);
/*
 * Releases the leases if nothing uses them; the peer is READY. True: they were released.
 */
bool mrf_ask_release_locked(struct mrf_peer *peer);

#endif

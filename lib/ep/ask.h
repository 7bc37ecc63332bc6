/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to a peer about its regions, answers, and the leases that some open; ep->lock held. */
#ifndef MRF_EP_ASK_H
#define MRF_EP_ASK_H

#include "ep/peer.h"
#include "ep/remote.h"

/*
 * With so many answers that are good once no operation begins to ask: first they are used up. One
 * that holds some already goes on asking, for all of its buffers.
 */
#define MRF_LEASES 32

/*
 * Wants the peer to be asked about these bytes, unless a question about the key is open; once:
 * rather for an answer that is good once.
 */
void mrf_ask_want(struct mrf_peer *peer, struct mrf_remote *remote, uint64_t addr,
		  uint64_t len, bool once);
/* Sends the questions that wait, as far as there is room. Or what the device says. */
int mrf_ask_send(struct mrf_peer *peer);
/* An answer came in. True: operations may go on. */
bool mrf_ask_answered(struct mrf_peer *peer, const struct mrf_answer *answer);
/* Nobody needs the questions that were not sent yet; who does after all wants them again. */
void mrf_ask_unwant(struct mrf_peer *peer);
/* The connection is gone, and with it the questions and the leases that were open. */
void mrf_ask_lost(struct mrf_peer *peer);
/* What the peer said of regions that are pinned on demand is void. */
void mrf_ask_forget(struct mrf_peer *peer);
/* Ends the leases when nothing uses them; READY. True: they have ended. */
bool mrf_ask_release(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes back over lines. */
#ifndef MRF_EP_TX_NOTE_H
#define MRF_EP_TX_NOTE_H

#include "ep/model/peer.h"

/* Both for struct mrf_inbox_calls; ep->lock is held. */

/*
 * A receive of one of the endpoint's lines has completed: a note has come, and more may be sent, or
 * the line is broken.
 */
void mrf_note_heard_locked(struct mrf_ep *ep, const struct mrf_wc *wc);
/*
 * A frame of the peer's says how much it has taken (mod 2^32): more may be sent. It may be older than
 * the last note, so a count that makes no sense is not looked at.
 */
void mrf_note_told_locked(struct mrf_peer *peer, uint32_t taken, unsigned bits);

#endif

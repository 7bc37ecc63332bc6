/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes back over lines. */
#ifndef MRF_EP_TX_NOTE_H
#define MRF_EP_TX_NOTE_H

#include "ep/model/peer.h"

/*
 * A receive of one of the endpoint's lines has completed: a note has come, and more may be sent, or
 * the line is broken. For mrf_inbox_new; ep->lock is held.
 */
void mrf_note_heard_locked(struct mrf_ep *ep, const struct mrf_wc *wc);

#endif

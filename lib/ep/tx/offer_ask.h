/* SPDX-License-Identifier: BSD-2-Clause */
/* What is offered, when its line was lost: its target is asked how it stands (offer_op.h). ep->lock is held. */
#ifndef MRF_EP_TX_OFFER_ASK_H
#define MRF_EP_TX_OFFER_ASK_H

#include "ep/model/peer.h"

/*
 * A new line was welcomed; what was in doubt is settled. known: the target knows the peer's frames.
 * Otherwise all that is offered fails.
 */
void mrf_offer_begins_locked(struct mrf_peer *peer, bool known);
/* Asks, as far as that can be done now. */
void mrf_offer_ask_locked(struct mrf_peer *peer);

#endif

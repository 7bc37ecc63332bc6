/* SPDX-License-Identifier: BSD-2-Clause */
/* What completes on an endpoint's queue and belongs to no connection, but to a pair beside one. */
#ifndef MRF_EP_TX_PAIRS_H
#define MRF_EP_TX_PAIRS_H

#include "ep/model/peer.h"
#include "verbs/verbs.h"

/*
 * Takes it in, and returns the peer, which may go on with what it has queued. NULL: it belongs to no
 * pair. ep->lock is held.
 */
struct mrf_peer *mrf_pairs_completed_locked(struct mrf_ep *ep, const struct mrf_wc *wc);

#endif

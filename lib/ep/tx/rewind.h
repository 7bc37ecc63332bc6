/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a peer's queue when its connection is lost. */
#ifndef MRF_EP_TX_REWIND_H
#define MRF_EP_TX_REWIND_H

#include "ep/model/peer.h"

/*
 * BROKEN -> IDLE, after the last completion: flushed operations go back to the front of
 * the queue. ep->lock is held.
 */
void mrf_rewind_queue_locked(struct mrf_peer *peer);

#endif

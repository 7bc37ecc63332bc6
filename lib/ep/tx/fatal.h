/* SPDX-License-Identifier: BSD-2-Clause */
/* How operations end that cannot go on, and what their completions say; ep->lock held. */
#ifndef MRF_EP_TX_FATAL_H
#define MRF_EP_TX_FATAL_H

#include "ep/model/peer.h"

/* Nothing of op is in flight any more, op is in no list, and op->broken.fatal says how it ended. */
void mrf_fatal_end_locked(struct mrf_peer *peer, struct mrf_op *op);
/* op, which waits in doubt (doubt.h), fails: nobody knows whether it was done. */
void mrf_fatal_doubt_locked(struct mrf_peer *peer, struct mrf_op *op);
/*
 * op, which waits or is posted in part, cannot go on. What it has in flight comes back first:
 * then op fails, for this reason.
 */
void mrf_fatal_halt_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_COMMIT_COMPLETE: a write that is done when its bytes are persistent at the peer.
 *
 *	MSG check --> WRITE --> MSG flush --> done
 *
 * First the peer's agent is asked whether the region is persistent memory, so that
 * nothing is written if it is not; after the write has been acknowledged the agent is
 * asked to flush. ep->lock held.
 */
#ifndef MRF_EP_TX_COMMIT_H
#define MRF_EP_TX_COMMIT_H

#include "ep/tx/rpc.h"

/* Makes a new operation, which is a write, begin with the check. */
void mrf_commit_begin(struct mrf_op *op);

#endif

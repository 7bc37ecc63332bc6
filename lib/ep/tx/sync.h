/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Syncs: requests of which nothing but the reply matters. When it comes, the peer's agent has taken in
 * all that came before the request on their connection, and has put the entries of writes with data
 * (FI_REMOTE_CQ_DATA) into its completion queue. When one is made: tx/order.h.
 */
#ifndef MRF_EP_TX_SYNC_H
#define MRF_EP_TX_SYNC_H

#include "ep/model/op.h"

/* op, of which mrf_order_is_sync is true, is to be posted next; ep->lock is held. */
void mrf_sync_begin_locked(struct mrf_op *op);

#endif

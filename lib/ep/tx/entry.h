/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations enter the queue of their peer, and leave it when they are canceled. */
#ifndef MRF_EP_TX_ENTRY_H
#define MRF_EP_TX_ENTRY_H

#include "ep/model/peer.h"

/*
 * An operation for the peer at this address begins, takes a place, and is the caller's
 * alone until mrf_entry_start. Handles completions first if they may make room. -FI_EAGAIN:
 * the endpoint is at its limit, and the peer has more than a few operations; or as
 * mrf_peers_get_locked. Takes ep->lock.
 */
int mrf_entry_begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
		    struct mrf_op **op);
/*
 * Fills an operation that has begun from a checked request, and finds or makes the
 * local registrations. Called without ep->lock. -FI_EINVAL (bad descriptor), -FI_EACCES
 * (the descriptor lacks the right), -FI_EFAULT or -FI_ENOMEM; the operation then holds
 * nothing.
 */
int mrf_entry_fill(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op);
/*
 * Its local buffers are ready: queues op for the peer at this address and posts it when
 * its turn comes. If they could not be made ready, ret says why: frees op and returns
 * ret, as for an address that was removed meanwhile. Takes ep->lock.
 */
int mrf_entry_start(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
		    struct mrf_op *op, int ret);
/*
 * Ends a waiting operation with this context, of which nothing was ever posted, with
 * FI_ECANCELED. -FI_ENOENT: there is no such operation. ep->lock is held.
 */
int mrf_entry_cancel_locked(struct mrf_ep *ep, const void *context);

#endif

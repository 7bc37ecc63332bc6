/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and ending operations; ep->lock held, unless a line says otherwise. */
#ifndef MRF_EP_TX_OP_H
#define MRF_EP_TX_OP_H

#include "ep/model/op.h"

/*
 * Returns an operation of this endpoint, reset, which counts as in use from now on.
 * -FI_ENOMEM.
 */
int mrf_op_take_locked(struct mrf_ep *ep, struct mrf_op **op);
/*
 * Fills an operation that was just taken from a checked request, and finds or makes the
 * local registrations. Called without ep->lock. -FI_EINVAL (bad descriptor), -FI_EACCES
 * (the descriptor lacks the right), -FI_EFAULT or -FI_ENOMEM; the operation then holds
 * nothing.
 */
int mrf_op_fill(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op);
/*
 * Frees op and everything it holds; where that takes time, it is left to mrf_op_finish.
 * Writes no completion.
 */
void mrf_op_free_locked(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Success: copies back what op brings, writes a completion if one is wanted, and frees op.
 * If that may take time, or op's peer has operations before it for which this is not done
 * yet, all of it is left to mrf_op_finish: operations to one peer complete in the order in
 * which they end.
 */
void mrf_op_done_locked(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Failure: always writes a completion with err (FI_E*), reason code and text, and frees
 * op; in the same order.
 */
void mrf_op_fail_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text);

/* Has the unacknowledged part of op posted again; what is in flight of op has failed. */
void mrf_op_again_locked(struct mrf_ep *ep, struct mrf_op *op);

/*
 * Copies results back to the application's memory and completes their operations, and lets
 * go of local buffers that are still registered; leaves what other threads are doing of
 * that. The thread that made progress calls it, without any lock, before it does anything
 * else.
 */
void mrf_op_finish(struct mrf_ep *ep);
/* Releases ep->lock, under which operations may have ended; then as mrf_op_finish. */
void mrf_op_unlock(struct mrf_ep *ep);

#endif

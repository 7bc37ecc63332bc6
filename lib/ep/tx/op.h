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
 * Success: delivers the data of a read, writes a completion if one is wanted, and frees
 * op.
 */
void mrf_op_done_locked(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Failure: always writes a completion with err (FI_E*), reason code and text, and frees
 * op.
 */
void mrf_op_fail_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text);

/*
 * Frees the operations in ep->unfinished, whose local buffers are still registered: the
 * thread that made progress calls it, without any lock, before it does anything else.
 */
void mrf_op_finish(struct mrf_ep *ep);
/* Releases ep->lock, under which operations may have ended; then as mrf_op_finish. */
void mrf_op_unlock(struct mrf_ep *ep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Making operations; ep->lock held, unless a line says otherwise. */
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
/* Has the unacknowledged part of op posted again; what is in flight of op has failed. */
void mrf_op_again_locked(struct mrf_ep *ep, struct mrf_op *op);

#endif

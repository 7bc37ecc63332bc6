/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and ending operations; ep->lock held. */
#ifndef MRF_EP_TX_OP_H
#define MRF_EP_TX_OP_H

#include "ep/model/op.h"

/*
 * Returns an uninitialised operation of this endpoint, which counts as in use from now
 * on. The caller has checked mrf_peer_has_place. -FI_ENOMEM.
 */
int mrf_op_take(struct mrf_ep *ep, struct mrf_op **op);
/*
 * Builds an operation from a checked request: finds or makes the local registrations.
 * Fails like mrf_op_take, or with -FI_EINVAL (bad descriptor), -FI_EACCES (the descriptor
 * lacks the right), -FI_EFAULT or -FI_ENOMEM.
 */
int mrf_op_new(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op **op);
/* Frees op and everything it holds; writes no completion. */
void mrf_op_free(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Success: delivers the data of a read, writes a completion if one is wanted, and frees
 * op.
 */
void mrf_op_done(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Failure: always writes a completion with err (FI_E*), reason code and text, and frees
 * op.
 */
void mrf_op_fail(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text);

#endif

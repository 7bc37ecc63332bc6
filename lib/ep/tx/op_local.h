/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of an operation are on this side. To find out may take long (memory is
 * pinned, or copied from where it has to be read in first), and so may letting them go:
 * both without ep->lock, by the one thread that knows the operation.
 */
#ifndef MRF_EP_TX_OP_LOCAL_H
#define MRF_EP_TX_OP_LOCAL_H

#include "ep/model/op.h"

/*
 * Finds or makes the registrations of a request's buffers. Fails like mrf_op_fill; the
 * operation then holds nothing.
 */
int mrf_op_local_take(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op);
/* Fast, and allowed under ep->lock, for an operation without registrations (op->temp). */
void mrf_op_local_drop(struct mrf_ep *ep, struct mrf_op *op);
/* False when a region that the operation uses on this side has been closed. */
bool mrf_op_local_open(const struct mrf_ep *ep, const struct mrf_op *op);

/*
 * Finds the local pieces of bytes [from, from + len): fills at most max entries of sge,
 * returns their number and lowers *len to what they cover.
 */
int mrf_op_sges(const struct mrf_op *op, uint64_t from, uint64_t *len, struct mrf_sge *sge,
		int max);

void mrf_bounce_init(struct mrf_bounce_pool *pool);
void mrf_bounce_fini(struct mrf_bounce_pool *pool);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/resolve/resolve.h"
#include "ep/tx/access_op.h"
#include "ep/tx/few_op.h"
#include "ep/tx/ring_op.h"
#include "ep/tx/rma_op.h"

static int write_device_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->type = mrf_few_fits_locked(peer, op) ? &mrf_op_few_write : &mrf_op_ring_write;
	return op->type->post(peer, op);
}

static int read_device_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->type = mrf_few_fits_locked(peer, op) ? &mrf_op_few_read : &mrf_op_ring_read;
	op->fetched = op->pos;
	return op->type->post(peer, op);
}

void mrf_access_joins_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (!op->type->staged || !op->total || !mrf_few_fits_locked(peer, op) ||
	    !mrf_resolve_staged_locked(op, 0))
		return;
	op->type = op->type->data ? &mrf_op_few_write : &mrf_op_few_read;
}

const struct mrf_op_type mrf_op_read = {
	.kind = MRF_OP_READ,
	.call = "fi_read",
	.post = mrf_rma_op_post_locked,
	.staged = read_device_locked,
};

const struct mrf_op_type mrf_op_write = {
	.kind = MRF_OP_WRITE,
	.call = "fi_write",
	.data = true,
	.post = mrf_rma_op_post_locked,
	.staged = write_device_locked,
};

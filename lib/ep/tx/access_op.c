/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/resolve/resolve.h"
#include "ep/tx/access_op.h"
#include "ep/tx/far_op.h"
#include "ep/tx/few_op.h"
#include "ep/tx/rma_op.h"

/* Few bytes go in requests, or in replies. */
static int use_agent_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	bool few = mrf_few_fits_locked(peer, op);

	mrf_lock_held(&peer->ep->lock);
	if (op->type->data)
		op->type = few ? &mrf_op_few_write : &mrf_op_far_write;
	else
		op->type = few ? &mrf_op_few_read : &mrf_op_far_read;
	return 0;
}

void mrf_access_joins_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (op->type->staged && op->total && mrf_resolve_staged_locked(op, 0))
		use_agent_locked(peer, op);
}

const struct mrf_op_type mrf_op_read = {
	.kind = MRF_OP_READ,
	.call = "fi_read",
	.post = mrf_rma_op_post_locked,
	.staged = use_agent_locked,
};

const struct mrf_op_type mrf_op_write = {
	.kind = MRF_OP_WRITE,
	.call = "fi_write",
	.data = true,
	.post = mrf_rma_op_post_locked,
	.staged = use_agent_locked,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/tx/order.h"
#include "ep/tx/rpc.h"
#include "ep/tx/sync.h"

static uint64_t fill_sync(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			  uint8_t *body)
{
	(void)len;
	(void)body;
	request->what = 0;
	request->body_len = 0;
	return op->total;
}

static bool synced_locked(struct mrf_op *op, const struct mrf_reply *reply)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (reply->status != MRF_REPLY_DONE)
		return !reply->body_len;
	mrf_order_synced_locked(op);
	return reply->done == op->total && !reply->body_len;
}

/* Entries that are not read keep the target's agent from taking anything in (rx/target_serve.c). */
static const struct mrf_rpc sync_rpc = { .type = MRF_MSG_SYNC,
					 .fill = fill_sync,
					 .take = synced_locked,
					 .repeats = true,
					 .patient = true };

static const struct mrf_op_type sync_type = {
	.kind = MRF_OP_RPC, .begun = true, .rpc = &sync_rpc, .post = mrf_rpc_post_locked
};

void mrf_sync_begin_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	op->type = &sync_type;
	op->total = 1;
	op->rma[0] = (struct fi_rma_iov){ .key = 0 }; /* which a refusal names */
}

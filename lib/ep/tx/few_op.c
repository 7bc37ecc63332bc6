/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/cause.h"
#include "ep/tx/few_op.h"
#include "ep/tx/rma_op.h"
#include "ep/tx/rpc.h"

/* As many as a message of requests, or one of replies, has room for. */
static uint64_t most_of(const struct mrf_op *op)
{
	return op->type->data ? MRF_PROTO_REQUEST_BODY : MRF_PROTO_REPLY_BODY;
}

static uint8_t *memory_of_few_locked(const struct mrf_op *op)
{
	return mrf_local_memory(&op->peer->ep->buf, &op->local);
}

bool mrf_few_fits_locked(struct mrf_peer *peer, const struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	return op->total <= most_of(op) && !op->pos && memory_of_few_locked(op);
}

/* What is next is in memory of a device, or it was when the key was resolved last. */
static int post_few_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_piece piece;

	mrf_lock_held(&peer->ep->lock);
	if (!mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (piece.staged && memory_of_few_locked(op))
		return mrf_rpc_post_locked(peer, op);
	if (piece.staged)
		return -FI_ECANCELED; /* the region of its local buffer was closed */
	/* The peer's kernel might refuse the access, and with it the requests that have no reply yet. */
	return op->awaiting ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
}

/* --- writes -------------------------------------------------------------------------------- */

static uint64_t fill_write_locked(const struct mrf_op *op, uint64_t len,
				  struct mrf_request *request, uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	request->what = MRF_STAGE_PUT;
	if (mrf_rma_is_counted_locked(op, op->pos + len))
		request->what |= MRF_STAGE_COUNT;
	memcpy(body, memory_of_few_locked(op) + op->pos, len);
	request->body_len = (uint32_t)len;
	return len;
}

static int post_write_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	uint64_t from = op->pos;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	/* Sends the data for the peer's application after everything else. */
	if (op->pos == op->total)
		return op->acked < op->total ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
	ret = post_few_locked(peer, op);
	/* A write that is counted must not be done twice. */
	op->told |= !ret && op->pos > from && mrf_rma_is_counted_locked(op, op->pos);
	return ret;
}

static const struct mrf_rpc write_rpc = {
	.type = MRF_MSG_BYTES,
	.fill = fill_write_locked,
	.explain = mrf_rma_explain_copy,
	.repeats = true,
};

const struct mrf_op_type mrf_op_few_write = {
	.kind = MRF_OP_WRITE,
	.data = true,
	.rpc = &write_rpc,
	.post = post_write_locked,
};

/* --- reads --------------------------------------------------------------------------------- */

static uint64_t fill_read(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			  uint8_t *body)
{
	(void)op;
	(void)body;
	request->what = 0;
	request->body_len = 0;
	return len;
}

static bool take_read_locked(struct mrf_op *op, const struct mrf_reply *reply)
{
	uint8_t *memory = memory_of_few_locked(op);

	mrf_lock_held(&op->peer->ep->lock);
	if (reply->body_len != reply->done)
		return false;
	if (memory)
		memcpy(memory + op->acked, reply->body, reply->body_len);
	else
		mrf_cause_fail_locked(op, MRF_WC_LOCAL, "");
	return true;
}

static const struct mrf_rpc read_rpc = {
	.type = MRF_MSG_BYTES,
	.fill = fill_read,
	.take = take_read_locked,
	.explain = mrf_rma_explain_copy,
	.repeats = true,
};

const struct mrf_op_type mrf_op_few_read = {
	.kind = MRF_OP_READ,
	.rpc = &read_rpc,
	.post = post_few_locked,
};

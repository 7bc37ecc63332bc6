/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/ring_op.h"
#include "ep/tx/rma_op.h"
#include "ep/tx/rpc.h"

/* Does another operation use the ring, or may one, while op has nothing in it? */
static bool ring_is_busy_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	const struct mrf_conn *conn = peer->conn;

	return op->pos == op->acked && !op->awaiting &&
	       (conn->head != conn->tail || mrf_rpc_awaited_locked(conn));
}

/*
 * As many of len bytes as lie together in the ring from the place of pos on, and are to be copied
 * in one go: less of a short operation, so that it is copied while it is under way, too, and more
 * of a long one, because a request costs as much as some 30 KiB do.
 */
static uint64_t together(const struct mrf_op *op, uint64_t len)
{
	uint64_t most = op->total < 2 * MRF_PROTO_RING ? MRF_STAGE_PIECE : MRF_STAGE_PART;

	return mrf_min(mrf_min(len, MRF_PROTO_RING - op->pos % MRF_PROTO_RING), most);
}

/*
 * Bytes [pos, pos + *len) between the ring and the local buffers; *len is lowered to what one
 * request does.
 */
static int post_ring_locked(struct mrf_peer *peer, struct mrf_op *op, enum mrf_vwr_op what,
			    uint32_t rkey, uint64_t *len, bool counts)
{
	struct mrf_sge sge[MRF_LOCAL_SGE];
	struct mrf_vwr wr = { .op = what,
			      .sge = sge,
			      .is_inline = op->local.kind == MRF_LOCAL_INLINE,
			      .remote_addr = op->pos % MRF_PROTO_RING,
			      .rkey = rkey };

	wr.nsge = mrf_local_sges(&op->local, op->pos, len, sge, MRF_LOCAL_SGE);
	return mrf_conn_post_locked(peer->conn, &wr, op, counts ? *len : 0, *len);
}

/* --- writes -------------------------------------------------------------------------------- */

/* The next bytes are in the ring: op->fetched is how many. */
static uint64_t fill_put_locked(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
				uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	(void)body;
	request->what = MRF_STAGE_PUT | (uint32_t)(op->pos % MRF_PROTO_RING);
	request->body_len = 0;
	len = mrf_min(len, op->fetched);
	if (mrf_rma_is_counted_locked(op, op->pos + len))
		request->what |= MRF_STAGE_COUNT;
	return len;
}

static int put_piece_locked(struct mrf_peer *peer, struct mrf_op *op, uint32_t rkey, uint64_t len)
{
	int ret;

	len = together(op, len);
	if (ring_is_busy_locked(peer, op) || !mrf_rpc_room_locked(peer->conn) ||
	    op->pos + len - op->acked > MRF_PROTO_RING)
		return -FI_EAGAIN;
	ret = post_ring_locked(peer, op, MRF_VWR_WRITE, rkey, &len, false);
	op->fetched = len;
	/* A write that is counted must not be done twice. */
	op->told |= !ret && mrf_rma_is_counted_locked(op, op->pos + len);
	return ret ? ret : mrf_rpc_post_locked(peer, op);
}

static int post_put_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_piece piece;

	mrf_lock_held(&peer->ep->lock);
	/* Sends the data for the peer's application after everything else. */
	if (op->pos == op->total)
		return op->acked < op->total ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
	if (!mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (piece.staged)
		return put_piece_locked(peer, op, piece.rkey, piece.len);
	/*
	 * The peer's kernel might refuse the access, and with it the requests that have no reply
	 * yet.
	 */
	return op->awaiting ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
}

static const struct mrf_rpc put_rpc = {
	.type = MRF_MSG_STAGE,
	.fill = fill_put_locked,
	.explain = mrf_rma_explain_copy,
	.repeats = true,
};

const struct mrf_op_type mrf_op_ring_write = {
	.kind = MRF_OP_WRITE,
	.data = true,
	.rpc = &put_rpc,
	.post = post_put_locked,
};

/* --- reads --------------------------------------------------------------------------------- */

static uint64_t *next_get(struct mrf_op *op)
{
	return &op->fetched;
}

/* One half of the ring at a time, so that the second half is filled while the first is read. */
static uint64_t fill_get(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			 uint8_t *body)
{
	(void)body;
	request->what = (uint32_t)(op->fetched % MRF_PROTO_RING);
	request->body_len = 0;
	return mrf_min(mrf_min(len, MRF_PROTO_RING / 2),
		       MRF_PROTO_RING - op->fetched % MRF_PROTO_RING);
}

static int read_ring_locked(struct mrf_peer *peer, struct mrf_op *op, uint32_t rkey, uint64_t len)
{
	int ret;

	len = together(op, mrf_min(len, op->fetched - op->pos));
	ret = post_ring_locked(peer, op, MRF_VWR_READ, rkey, &len, true);
	op->pos += ret ? 0 : len;
	return ret;
}

/* Bytes that have come are read before more are asked for. */
static int get_piece_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	if (op->awaiting || ring_is_busy_locked(peer, op) || !mrf_rpc_room_locked(peer->conn) ||
	    op->fetched - op->acked > MRF_PROTO_RING / 2)
		return -FI_EAGAIN;
	return mrf_rpc_post_locked(peer, op);
}

static int post_get_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	bool come = op->pos < op->fetched;
	struct mrf_piece piece;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (come && op->awaiting)
		return -FI_EAGAIN;
	if (!mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (piece.staged)
		return come ? read_ring_locked(peer, op, piece.rkey, piece.len)
			    : get_piece_locked(peer, op);
	ret = mrf_rma_op_post_locked(peer, op);
	op->fetched = op->pos;
	return ret;
}

/* What has come to the ring and was not read. */
static void lose_ring(struct mrf_op *op)
{
	op->fetched = op->acked;
}

static void get_again(struct mrf_ep *ep, struct mrf_op *op)
{
	(void)ep;
	lose_ring(op);
}

static const struct mrf_rpc get_rpc = {
	.type = MRF_MSG_STAGE,
	.fill = fill_get,
	.explain = mrf_rma_explain_copy,
	.from = next_get,
	.repeats = true,
};

const struct mrf_op_type mrf_op_ring_read = {
	.kind = MRF_OP_READ,
	.rpc = &get_rpc,
	.post = post_get_locked,
	.again = get_again,
	.lost = lose_ring,
};

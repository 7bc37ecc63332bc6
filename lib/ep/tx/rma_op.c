/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "ep/link/conn.h"
#include "ep/resolve/remote.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/rma_op.h"
#include "ep/tx/rpc.h"

/* --- carried out by the device -------------------------------------------------------------- */

/* Adds the immediate data for the bytes that end at upto. -FI_ENOKEY: look at the keys again. */
static int add_imm_locked(const struct mrf_peer *peer, const struct mrf_op *op, uint64_t upto,
			  struct mrf_vwr *wr)
{
	bool imm = op->imm.has && upto == op->total;

	wr->imm = op->imm.data;
	if (peer->target.events && upto) {
		if (!mrf_resolve_event_locked(op, upto, &wr->imm))
			return -FI_ENOKEY;
		imm = wr->imm;
	}
	wr->op = imm ? MRF_VWR_WRITE_IMM : MRF_VWR_WRITE;
	return 0;
}

/* Sends the application's data behind all bytes, where immediate data are event numbers. */
static int post_data_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	const struct mrf_data data = { .data = op->imm.data, .len = op->total };
	uint8_t msg[MRF_PROTO_DATA_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)msg };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };
	int ret;

	sge.len = (uint32_t)mrf_data_encode(&data, msg);
	ret = mrf_conn_post_locked(peer->conn, &wr, op, 0, sge.len);
	op->imm.posted = !ret;
	return ret;
}

int mrf_rma_op_post_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	const struct mrf_vdev_limits *limits = mrf_vdev_limits(peer->ep->domain->vdev);
	struct mrf_sge sge[MRF_LOCAL_SGE];
	struct mrf_vwr wr = { .sge = sge, .is_inline = op->local.kind == MRF_LOCAL_INLINE };
	struct mrf_piece piece = { .len = 0 };
	uint64_t len;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (op->imm.has && peer->target.events && op->pos == op->total)
		return post_data_locked(peer, op);
	/*
	 * All bytes may be there and only the data missing, because what the peer accepts has
	 * changed.
	 */
	if (op->pos < op->total && !mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (mrf_unlikely(piece.staged))
		return op->type->staged ? op->type->staged(peer, op) : -FI_EIO;
	wr.rkey = piece.rkey;
	wr.remote_addr = piece.addr;
	len = mrf_min(mrf_min(piece.len, op->total - op->pos), limits->max_msg_size);
	wr.nsge = mrf_local_sges(&op->local, op->pos, &len, sge, MRF_LOCAL_SGE);
	wr.op = MRF_VWR_READ;
	ret = op->type->data ? add_imm_locked(peer, op, op->pos + len, &wr) : 0;
	if (ret)
		return ret;
	ret = mrf_conn_post_locked(peer->conn, &wr, op, len, len);
	if (ret)
		return ret;
	op->pos += len;
	op->told |= wr.op == MRF_VWR_WRITE_IMM;
	op->imm.posted = op->imm.has && !peer->target.events && op->pos == op->total;
	return 0;
}

/* --- the ring ----------------------------------------------------------------------------- */

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

static void explain_copy(const struct mrf_op *op, int err, struct mrf_why *why)
{
	mrf_why_set(why, err, 4167,
		    "key 0x%" PRIx64 ": the peer could not copy from or to its device memory: "
		    "%s%s",
		    op->rma[0].key, mrf_errtext(err),
		    err == FI_EFAULT ? " (it was freed under its region)" : "");
}

/* --- writes -------------------------------------------------------------------------------- */

/* Are the bytes up to there the last ones for a region that counts writes? */
static bool is_counted_locked(const struct mrf_op *op, uint64_t upto)
{
	uint32_t event = 0;

	return op->peer->target.events && mrf_resolve_event_locked(op, upto, &event) && event;
}

/* The next bytes are in the ring: op->fetched is how many. */
static uint64_t fill_put_locked(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
				uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	(void)body;
	request->what = MRF_STAGE_PUT | (uint32_t)(op->pos % MRF_PROTO_RING);
	request->body_len = 0;
	len = mrf_min(len, op->fetched);
	if (is_counted_locked(op, op->pos + len))
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
	op->told |= !ret && is_counted_locked(op, op->pos + len);
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
	.explain = explain_copy,
	.repeats = true,
};

static const struct mrf_op_type put = {
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
	.explain = explain_copy,
	.from = next_get,
	.repeats = true,
};

static const struct mrf_op_type get = {
	.kind = MRF_OP_READ,
	.rpc = &get_rpc,
	.post = post_get_locked,
	.again = get_again,
	.lost = lose_ring,
};

/* --- both ---------------------------------------------------------------------------------- */

static int become_put_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->type = &put;
	return post_put_locked(peer, op);
}

static int become_get_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->type = &get;
	op->fetched = op->pos;
	return post_get_locked(peer, op);
}

const struct mrf_op_type mrf_op_read = {
	.kind = MRF_OP_READ,
	.call = "fi_read",
	.post = mrf_rma_op_post_locked,
	.staged = become_get_locked,
};

const struct mrf_op_type mrf_op_write = {
	.kind = MRF_OP_WRITE,
	.call = "fi_write",
	.data = true,
	.post = mrf_rma_op_post_locked,
	.staged = become_put_locked,
};

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

/* --- by the peer's agent --------------------------------------------------------------------- */

void mrf_rma_explain_copy(const struct mrf_op *op, int err, struct mrf_why *why)
{
	mrf_why_set(why, err, 4167,
		    "key 0x%" PRIx64 ": the peer could not copy from or to its device memory: "
		    "%s%s",
		    op->rma[0].key, mrf_errtext(err),
		    err == FI_EFAULT ? " (it was freed under its region)" : "");
}

bool mrf_rma_is_counted_locked(const struct mrf_op *op, uint64_t upto)
{
	uint32_t event = 0;

	mrf_lock_held(&op->peer->ep->lock);
	return op->peer->target.events && mrf_resolve_event_locked(op, upto, &event) && event;
}

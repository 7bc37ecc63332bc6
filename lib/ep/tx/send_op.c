/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "ep/link/conn.h"
#include "ep/msg/reverse.h"
#include "ep/tx/delivery.h"
#include "ep/tx/entry.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/send_frame.h"
#include "ep/tx/send_op.h"
#include "proto/frame.h"

_Static_assert(MRF_SEND_MAX == MRF_LINE_DATA, "a short message is one frame");

/* The head goes into the first piece, which is left out if the message needs none. */
static inline void put_message_head(struct mrf_conn *conn, const struct mrf_frame_message *message,
				    struct mrf_conn_frame *frame)
{
	uint8_t *head = mrf_conn_head(conn);

	frame->sge[0] = (struct mrf_sge){ .addr = (uintptr_t)head,
					  .len = (uint32_t)mrf_frame_message_encode(message, head),
					  .lkey = conn->slots_mr.lkey };
}

static inline void leave_out_head(const struct mrf_frame_message *message,
				  struct mrf_conn_frame *frame)
{
	const struct mrf_frame_bare bare = { .flags = message->flags, .taken = message->taken };

	frame->sge++;
	frame->nsge--;
	frame->has_imm = true;
	frame->imm = mrf_frame_bare_encode(&bare);
}

int mrf_send_frame_locked(struct mrf_peer *peer, struct mrf_op *op, struct mrf_sge *sge, int nsge,
			  bool is_inline)
{
	struct mrf_conn_frame frame = { .sge = sge, .nsge = nsge + 1, .is_inline = is_inline };
	struct mrf_frame_message message;
	int ret = mrf_send_frame_fill_locked(peer, op, &message);

	mrf_lock_held(&peer->ep->lock);
	/* It is offered: the long way sees to that. */
	if (mrf_unlikely(op->total > peer->line.eager))
		return -FI_EMSGSIZE;
	if (mrf_unlikely(ret))
		return ret;
	if (mrf_likely(mrf_frame_may_be_bare(&peer->line.said, &message)))
		leave_out_head(&message, &frame);
	else
		put_message_head(peer->conn, &message, &frame);
	ret = mrf_conn_post_frame_locked(peer->conn, op, &frame);
	if (mrf_unlikely(ret))
		return ret;
	op->pos = op->total;
	mrf_send_frame_posted_locked(peer, op, &message);
	if (!frame.has_imm)
		mrf_frame_named(&peer->line.said, &message);
	if (mrf_unlikely(op->send.delivers))
		mrf_delivery_await_locked(peer, op);
	return 0;
}

/* What has been copied into the operation goes inline, and the head with it. */
static int post_frame_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_sge sge[MRF_LOCAL_SGE + 1];
	uint64_t len = op->total;
	int nsge = mrf_local_sges(&op->local, 0, &len, sge + 1, MRF_LOCAL_SGE);

	mrf_lock_held(&peer->ep->lock);
	if (len != op->total)
		return -FI_EIO;
	return mrf_send_frame_locked(peer, op, sge, nsge,
				     op->local.kind == MRF_LOCAL_INLINE || !op->total);
}

const struct mrf_op_type mrf_op_send = {
	.kind = MRF_OP_SEND,
	.call = "fi_send",
	.data = true, /* the frame itself, which a message of no bytes has, too */
	.post = post_frame_locked,
};

int mrf_send_submit(struct mrf_ep *ep, const struct mrf_req *req)
{
	struct mrf_op *op;
	int ret = mrf_entry_begin(ep, MRF_CONN_LINE, req->addr, &op);

	if (ret)
		return ret;
	ret = mrf_entry_fill(ep, req, op);
	mrf_send_fill(op, req->tagged, req->tag, op->imm.has);
	op->send.delivers = req->flags & FI_DELIVERY_COMPLETE || ep->orders & MRF_ORDER_AFTER_SENDS;
	/* It comes from a device, and there was no place for a copy. */
	if (op->local.kind == MRF_LOCAL_APART)
		op->type = &mrf_op_offer;
	return mrf_entry_start(ep, MRF_CONN_LINE, req->addr, op, ret);
}

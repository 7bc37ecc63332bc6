/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/errtext.h"
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/link/far.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/cause.h"
#include "ep/tx/fail.h"
#include "ep/tx/far_op.h"
#include "ep/tx/rma_op.h"
#include "ep/tx/rpc.h"
#include "ep/tx/settle.h"

/* --- requests ---------------------------------------------------------------------------- */

/* The first request tells the target which pair it is, and it tells its own. */
static uint64_t fill_name_locked(const struct mrf_far *far, struct mrf_request *request,
				 uint8_t *body)
{
	struct mrf_vpair_name end = mrf_vpair_name(far->pair);
	const struct mrf_pair_name name = { .qpn = end.qpn, .psn = end.psn };

	mrf_lock_held(&far->conn->peer->ep->lock);
	request->body_len = (uint32_t)mrf_pair_name_encode(&name, body);
	return 1;
}

/* As many of len bytes as one SEND has. */
static uint64_t fill_part_locked(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
				 uint8_t *body)
{
	const struct mrf_far *far = op->peer->conn->far;
	struct mrf_sge sge[MRF_LOCAL_SGE];

	mrf_lock_held(&op->peer->ep->lock);
	request->body_len = 0;
	if (!far->other.qpn)
		return fill_name_locked(far, request, body);
	len = mrf_min(len, MRF_PROTO_STAGE);
	mrf_local_sges(&op->local, op->pos, &len, sge, MRF_LOCAL_SGE);
	return len;
}

static uint64_t fill_get_locked(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
				uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	request->what = 0;
	return fill_part_locked(op, len, request, body);
}

static uint64_t fill_put_locked(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
				uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	request->what = MRF_STAGE_PUT;
	len = fill_part_locked(op, len, request, body);
	if (!request->body_len && mrf_rma_is_counted_locked(op, op->pos + len))
		request->what |= MRF_STAGE_COUNT;
	return len;
}

/* The target's end of the pair. */
static bool take_far_name_locked(struct mrf_conn *conn, const struct mrf_reply *reply)
{
	struct mrf_pair_name name;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!reply->body_len)
		return reply->status != MRF_REPLY_DONE;
	if (conn->far->other.qpn || reply->done ||
	    mrf_pair_name_decode(reply->body, reply->body_len, &name))
		return false;
	conn->far->other = (struct mrf_vpair_name){ .qpn = name.qpn, .psn = name.psn };
	mrf_conn_kick_locked(conn->peer);
	return true;
}

/*
 * The nth request of reads brings all of its bytes if it is done, else none. Of that and of the bytes one
 * comes first, and the other has to agree.
 */
static bool agrees(struct mrf_far *far, unsigned nth, bool is_second, bool brings)
{
	bool *known = &far->brings[nth % MRF_FAR_IN];

	if (is_second)
		return *known == brings;
	*known = brings;
	return true;
}

static bool reply_agrees_locked(struct mrf_far *far, const struct mrf_reply *reply)
{
	unsigned nth = far->replied++;

	mrf_lock_held(&far->conn->peer->ep->lock);
	return agrees(far, nth, (int)(nth - far->first) < 0, reply->done);
}

static bool bytes_agree_locked(struct mrf_far *far, bool bring)
{
	unsigned nth = far->first - 1;

	mrf_lock_held(&far->conn->peer->ep->lock);
	return agrees(far, nth, (int)(nth - far->replied) < 0, bring);
}

static bool hear_reply_locked(struct mrf_conn *conn, const struct mrf_awaited *awaited,
			      const struct mrf_reply *reply)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (!awaited->carries)
		return take_far_name_locked(conn, reply);
	return !reply->body_len && (!awaited->rpc->comes || reply_agrees_locked(conn->far, reply));
}

/* --- what goes over the pair --------------------------------------------------------------- */

/* The pair has ended, and the connection with it. */
static void end_pair_locked(struct mrf_far *far, enum mrf_wc_status cause)
{
	if (far->cause == MRF_WC_OK)
		far->cause = cause;
	far->connected = false;
	mrf_conn_break_locked(far->conn->peer);
}

/* Where the bytes of a request are. Returns the number of pieces; 0: they are not all there. */
static int pieces_of_request_locked(const struct mrf_awaited *awaited, struct mrf_sge *sge)
{
	uint64_t len = awaited->len;
	int nsge;

	mrf_lock_held(&awaited->op->peer->ep->lock);
	nsge = mrf_local_sges(&awaited->op->local, awaited->pos, &len, sge, MRF_LOCAL_SGE);
	return len == awaited->len ? nsge : 0;
}

/* It counts as posted if the kernel has refused it: mrf_conn_denied_locked. */
static int posted_locked(struct mrf_far *far, const struct mrf_awaited *awaited, int ret,
			 struct mrf_posted *at)
{
	mrf_lock_held(&far->conn->peer->ep->lock);
	if (mrf_unlikely(ret == -FI_EACCES))
		mrf_conn_denied_locked(far->conn);
	else if (mrf_unlikely(ret))
		return ret;
	*at = (struct mrf_posted){ .op = awaited->op, .bytes = (uint32_t)awaited->len };
	awaited->op->inflight++;
	far->conn->peer->ep->scq_used++;
	return 0;
}

static int send_part_locked(struct mrf_conn *conn, const struct mrf_awaited *awaited)
{
	struct mrf_far *far = conn->far;
	struct mrf_sge sge[MRF_LOCAL_SGE];
	int nsge = pieces_of_request_locked(awaited, sge), ret;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!nsge)
		return -FI_EIO;
	ret = mrf_vpair_send(far->pair, far->out_id, sge, nsge,
			     awaited->op->local.kind == MRF_LOCAL_INLINE);
	ret = posted_locked(far, awaited, ret, &far->out[far->tail % MRF_PROTO_STAGES]);
	far->tail += !ret;
	/* A write that is counted must not be done twice. */
	awaited->op->told |= !ret && awaited->what & MRF_STAGE_COUNT;
	return ret;
}

static int await_part_locked(struct mrf_conn *conn, const struct mrf_awaited *awaited)
{
	struct mrf_far *far = conn->far;
	struct mrf_sge sge[MRF_LOCAL_SGE];
	int nsge = pieces_of_request_locked(awaited, sge), ret;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!nsge)
		return -FI_EIO;
	ret = mrf_vpair_recv(far->pair, far->in_id, sge, nsge);
	ret = posted_locked(far, awaited, ret, &far->in[far->last % MRF_FAR_IN]);
	far->last += !ret;
	return ret;
}

/* --- posting -------------------------------------------------------------------------------- */

/* May one more request of op's type be made, in view of those without a reply, and of the pair? */
static bool has_stage_locked(const struct mrf_op *op)
{
	const struct mrf_conn *conn = op->peer->conn;
	const struct mrf_far *far = conn->far;
	const struct mrf_rpc *rpc = op->type->rpc;
	unsigned room = rpc->comes ? MRF_FAR_IN - (far->last - far->first)
				   : MRF_PROTO_STAGES - (far->tail - far->head);
	unsigned gathered = mrf_rpc_gathered_locked(conn, rpc);

	mrf_lock_held(&op->peer->ep->lock);
	return mrf_rpc_sent_locked(conn, rpc) + gathered < MRF_PROTO_STAGES && gathered < room;
}

/* The pair is there, and takes more; otherwise that will be seen to. */
static bool is_ready_locked(const struct mrf_op *op)
{
	struct mrf_conn *conn = op->peer->conn;

	mrf_lock_held(&op->peer->ep->lock);
	if (!conn->far) {
		mrf_far_want_locked(conn);
		return false;
	}
	/* One request alone names it. */
	if (!conn->far->other.qpn)
		return !mrf_rpc_awaited_locked(conn);
	if (!conn->far->connected || has_stage_locked(op))
		return conn->far->connected;
	/* What was sent has a reply, but no acknowledgement. */
	if (!mrf_rpc_awaited_locked(conn))
		mrf_conn_watch_locked(op->peer);
	return false;
}

bool mrf_far_lets_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	return !op->type->rpc || !op->type->rpc->carry || op->pos == op->total ||
	       is_ready_locked(op);
}

/* How many receives are posted for op. */
static unsigned coming_locked(const struct mrf_op *op)
{
	const struct mrf_far *far = op->peer->conn->far;
	unsigned n = 0, i;

	mrf_lock_held(&op->peer->ep->lock);
	for (i = far ? far->first : 0; far && i != far->last; i++)
		n += far->in[i % MRF_FAR_IN].op == op;
	return n;
}

/*
 * What is done of op is counted from its first byte on. So bytes that come over one connection wait
 * for those before them that come over the other.
 */
static bool is_in_turn_locked(const struct mrf_op *op, bool staged)
{
	unsigned coming = coming_locked(op);

	mrf_lock_held(&op->peer->ep->lock);
	if (!op->type->rpc->comes)
		return true;
	return staged ? op->inflight == coming : !coming;
}

static int post_far_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_piece piece;

	mrf_lock_held(&peer->ep->lock);
	if (!mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (!is_in_turn_locked(op, piece.staged))
		return -FI_EAGAIN;
	if (piece.staged) {
		mrf_stage_widen(&op->local);
		return mrf_rpc_post_locked(peer, op);
	}
	/* The peer's kernel might refuse the access, and with it the requests that have no reply yet. */
	return op->awaiting ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
}

static int post_put_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	/* Sends the data for the peer's application after everything else. */
	if (op->pos == op->total)
		return op->acked < op->total ? -FI_EAGAIN : mrf_rma_op_post_locked(peer, op);
	return post_far_locked(peer, op);
}

static const struct mrf_rpc put_rpc = {
	.type = MRF_MSG_STAGE,
	.fill = fill_put_locked,
	.hear = hear_reply_locked,
	.carry = send_part_locked,
	.explain = mrf_rma_explain_copy,
	.repeats = true,
};

const struct mrf_op_type mrf_op_far_write = {
	.kind = MRF_OP_WRITE,
	.data = true,
	.rpc = &put_rpc,
	.post = post_put_locked,
};

static const struct mrf_rpc get_rpc = {
	.type = MRF_MSG_STAGE,
	.fill = fill_get_locked,
	.hear = hear_reply_locked,
	.carry = await_part_locked,
	.explain = mrf_rma_explain_copy,
	.comes = true,
	.repeats = true,
};

const struct mrf_op_type mrf_op_far_read = {
	.kind = MRF_OP_READ,
	.rpc = &get_rpc,
	.post = post_far_locked,
};

/* --- what comes back --------------------------------------------------------------------------- */

static struct mrf_posted next_out_locked(struct mrf_far *far)
{
	struct mrf_posted posted = far->out[far->head++ % MRF_PROTO_STAGES];

	far->conn->peer->ep->scq_used--;
	posted.op->inflight--;
	return posted;
}

static struct mrf_posted next_in_locked(struct mrf_far *far)
{
	struct mrf_posted posted = far->in[far->first++ % MRF_FAR_IN];

	far->conn->peer->ep->scq_used--;
	posted.op->inflight--;
	return posted;
}

/* The bytes of a read are lost with the connection, for this reason. */
static void bytes_lost_locked(struct mrf_op *op, enum mrf_wc_status cause)
{
	struct mrf_fate fate = mrf_fail_fate_locked(op, cause, MRF_AHEAD, MRF_OP_READ, false);

	mrf_lock_held(&op->peer->ep->lock);
	if (!op->failed && fate.deed == MRF_FATAL)
		mrf_cause_fail_doubt_locked(op, fate.status);
	else
		mrf_settle_again_locked(op);
}

/*
 * They go again over the next connection, unless their memory is gone. Those of a write have a request,
 * too, which is lost later.
 */
static void far_failed_locked(struct mrf_far *far, struct mrf_op *op, bool out,
			      enum mrf_wc_status status)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (!mrf_local_open(&op->peer->ep->buf, &op->local))
		status = MRF_WC_LOCAL;
	end_pair_locked(far, status);
	if (op->failed)
		mrf_settle_locked(op);
	else if (status == MRF_WC_LOCAL)
		mrf_cause_fail_locked(op, status, "");
	else if (out)
		mrf_settle_again_locked(op);
	else
		bytes_lost_locked(op, far->cause);
}

/* len bytes have come. None: the reply says why. */
static void far_came_locked(struct mrf_far *far, const struct mrf_posted *posted, uint64_t len)
{
	mrf_lock_held(&far->conn->peer->ep->lock);
	if ((len && len != posted->bytes) || !bytes_agree_locked(far, len)) {
		mrf_warn(FI_LOG_EP_DATA, 4172,
			 "a peer sends other bytes of its device memory than it was asked for: "
			 "its connection is closed");
		far_failed_locked(far, posted->op, false, MRF_WC_OTHER);
		return;
	}
	if (!posted->op->failed)
		posted->op->acked += len;
	mrf_settle_locked(posted->op);
}

void mrf_far_completed_locked(struct mrf_far *far, const struct mrf_wc *wc)
{
	bool out = wc->wr_id == far->out_id;
	struct mrf_posted posted;

	mrf_lock_held(&far->conn->peer->ep->lock);
	if (out ? far->head == far->tail : far->first == far->last)
		return;
	posted = out ? next_out_locked(far) : next_in_locked(far);
	if (mrf_unlikely(wc->status != MRF_WC_OK))
		far_failed_locked(far, posted.op, out, wc->status);
	else if (out)
		mrf_settle_locked(posted.op);
	else
		far_came_locked(far, &posted, wc->byte_len);
	/* It may have been the last of an address that was removed. */
	if (mrf_unlikely(far->conn->peer->gone))
		mrf_conn_kick_locked(far->conn->peer);
}

void mrf_far_lost_locked(struct mrf_conn *conn)
{
	struct mrf_far *far = conn->far;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!far)
		return;
	while (far->head != far->tail)
		mrf_settle_again_locked(next_out_locked(far).op);
	while (far->first != far->last)
		bytes_lost_locked(next_in_locked(far).op, mrf_rpc_cause(conn));
	mrf_far_free_locked(conn);
}

void mrf_far_abandon_locked(struct mrf_peer *peer)
{
	struct mrf_far *far = peer->conn ? peer->conn->far : NULL;

	mrf_lock_held(&peer->ep->lock);
	while (far && mrf_far_in_flight(far)) {
		struct mrf_op *op =
			far->head != far->tail ? next_out_locked(far).op : next_in_locked(far).op;

		/* It has failed, and waited for this. */
		if (!op->inflight && !op->queued && !op->chore)
			mrf_list_add_tail(&op->node, &peer->redo);
	}
}

/* --- the agent --------------------------------------------------------------------------------- */

static bool is_far(const struct mrf_op *op)
{
	return op->type == &mrf_op_far_write || op->type == &mrf_op_far_read;
}

/* All that would go over it. */
static void no_far_pair_locked(struct mrf_peer *peer, int ret)
{
	struct mrf_why why;

	mrf_why_set(&why, -ret, 4173,
		    "there are no resources for accesses to memory of devices at this peer: %s",
		    mrf_errtext(-ret));
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (is_far(op))
			mrf_settle_fail_locked(op, &why);
	}
}

static void make_far_locked(struct mrf_peer *peer)
{
	int ret = mrf_far_open_locked(peer->conn);

	mrf_lock_held(&peer->ep->lock);
	/* A connection that has just ended makes none, either. */
	if (ret && ret != -FI_ECONNRESET && peer->state == MRF_PEER_READY)
		no_far_pair_locked(peer, ret);
	else if (ret)
		mrf_conn_break_locked(peer);
}

void mrf_far_serve_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;

	mrf_lock_held(&peer->ep->lock);
	if (conn->wants_far && !conn->far)
		make_far_locked(peer);
	if (peer->state == MRF_PEER_READY && conn->far && conn->far->other.qpn &&
	    !conn->far->connected && mrf_far_connect_locked(conn))
		mrf_conn_break_locked(peer);
}

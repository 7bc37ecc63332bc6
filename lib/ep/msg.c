/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a peer's agent, the initiator's half. */
#include <inttypes.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "base/log.h"
#include "ep/commit.h"
#include "ep/peer_int.h"

static int send_off(struct mrf_conn *conn, const struct mrf_request *request)
{
	struct mrf_sge sge = { .addr = (uintptr_t)conn->outgoing,
			       .lkey = conn->slots_mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .nsge = 1, .sge = &sge };

	sge.len = (uint32_t)mrf_request_encode(request, conn->outgoing);
	return mrf_conn_post(conn, &wr, NULL, 0);
}

int mrf_msg_post(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_conn *conn = peer->conn;
	uint8_t *body = conn->outgoing + MRF_PROTO_REQUEST_HEAD;
	struct mrf_request request = { .type = op->msg->type,
				       .cookie = peer->ep->clock + 1,
				       .body = body };
	int ret;

	if (!mrf_resolve_request(op, op->pos, &request))
		return -FI_ENOKEY;
	request.len = op->msg->fill(op, request.len, &request, body);
	ret = send_off(conn, &request);
	if (ret)
		return ret;
	conn->awaited = (struct mrf_awaited){ .op = op,
					      .cookie = ++peer->ep->clock,
					      .len = request.len,
					      .at = conn->tail - 1 };
	op->pos += request.len;
	mrf_conn_probe(conn);
	return 0;
}

/* Was flushed behind something that had to run first and did not. */
static bool certainly_unseen(const struct mrf_conn *conn, const struct mrf_wc *wc)
{
	if (wc->status == MRF_WC_REFUSED)
		return true;
	return wc->status == MRF_WC_FLUSHED && mrf_conn_stopped_there(conn);
}

void mrf_msg_sent(struct mrf_conn *conn, unsigned at, const struct mrf_wc *wc)
{
	struct mrf_awaited *awaited = &conn->awaited;

	if (!awaited->op || awaited->at != at || wc->status == MRF_WC_OK)
		return;
	awaited->unseen = certainly_unseen(conn, wc);
	awaited->op->refused += wc->status == MRF_WC_REFUSED;
}

void mrf_msg_lost(struct mrf_conn *conn)
{
	struct mrf_op *op = conn->awaited.op;

	if (!op)
		return;
	conn->awaited.op = NULL;
	if (conn->awaited.unseen) {
		mrf_peer_again(conn->peer, op);
		return;
	}
	op->fatal = conn->cause == MRF_WC_TIMEOUT || conn->cause == MRF_WC_DENIED ?
			    conn->cause :
			    MRF_WC_FLUSHED;
	mrf_op_leave(op);
	mrf_peer_op_fatal(conn->peer, op);
}

/* --- replies -------------------------------------------------------------------------- */

static void fail(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_reply *reply)
{
	/* Whatever came over the wire, it is to be an error number. */
	int err = reply->err && reply->err < FI_ERRNO_MAX ? (int)reply->err : FI_EIO;
	struct mrf_why why;

	if (op->msg->explain)
		op->msg->explain(op, reply, &why);
	else
		mrf_why_set(&why, err, 4240,
			    "key 0x%" PRIx64 ": the peer could not do it: %s%s",
			    op->rma[0].key, mrf_errtext(err),
			    err == FI_EIO ? " (it may or may not have been done)" : "");
	mrf_op_leave(op);
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_op_fail(peer->ep, op, why.err, why.code, why.text);
}

static void conclude(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_reply *reply)
{
	mrf_peer_again(peer, op);
	switch (reply->status) {
	case MRF_REPLY_DONE:
		if (op->acked != op->total)
			break;
		if (op->commit) {
			mrf_commit_checked(op);
			break;
		}
		mrf_op_leave(op);
		mrf_op_done(peer->ep, op);
		break;
	case MRF_REPLY_FAILED:
		fail(peer, op, reply);
		break;
	default:
		/* As if the peer's kernel had refused: ask why. */
		mrf_peer_refused(peer, op);
	}
}

static bool belongs(const struct mrf_awaited *awaited, const struct mrf_reply *reply)
{
	if (!awaited->op || reply->cookie != awaited->cookie)
		return false;
	/* Something is always done, or else something is left that was not. */
	return reply->status == MRF_REPLY_DONE ? reply->done && reply->done <= awaited->len :
						 reply->done < awaited->len;
}

int mrf_msg_replied(struct mrf_peer *peer, const struct mrf_reply *reply)
{
	struct mrf_conn *conn = peer->conn;
	struct mrf_op *op = conn->awaited.op;

	if (!belongs(&conn->awaited, reply) ||
	    (op->msg->take && !op->msg->take(op, reply)))
		return -FI_EINVAL;
	/* What was ahead of it is done and completes first. */
	mrf_ep_progress(peer->ep);
	conn->awaited.op = NULL;
	peer->losses = 0;
	op->acked += reply->done;
	conclude(peer, op, reply);
	mrf_peer_advance(peer);
	return 0;
}

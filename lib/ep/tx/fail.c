/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of operations when a work request fails.
 *
 * On rxe a refusal by the target's kernel puts the queue pairs at both ends into the
 * error state, without an event at the target, and flushes what was queued behind it.
 * Operations that have certainly not run are posted again, in order, on the next
 * connection; others fail with "may or may not have been done". A connection error other
 * than a refusal never repeats a write.
 *
 * What has certainly not run: a target carries out requests in order, and none behind one
 * that it refuses. So what is behind a refusal, or behind a work request that could not
 * be sent (its local buffer is closed, or there is no way to the peer), has not run,
 * provided that it happened when the request was sent for the first time. When an
 * acknowledgement is lost, the device sends again, from the first request that was not
 * acknowledged. All behind it may have run long ago, and now a local region that was
 * closed meanwhile, or a link that went down, makes it fail (LOC_PROT_ERR, LOC_QP_OP_ERR;
 * on Linux 6.12 a flush). A target does not look again at what a repeated write or atomic
 * operation names; it does carry out a read again, and refuses it if the region is closed
 * by now.
 *
 * The kernel counts how often a device begins to send again (completer_retry_err,
 * verbs/vagain.h). The count is taken when a connection is made. If it has changed when
 * the connection breaks, or is not known, what is behind the failure may have run, and so
 * may what is behind a read whose own buffer was closed: that shows only when the data come
 * back and find no place. The count is the whole device's, so it may be for what others
 * lost. Reads are posted again; about the others the target is asked (doubt.h). If it cannot
 * be asked (the link is down, or packets cannot be counted), they fail.
 *
 * LOC_QP_OP_ERR alone does not tell a local buffer from a missing route: the buffer is
 * blamed only if the operation's local region is closed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/doubt.h"
#include "ep/tx/fail.h"
#include "ep/tx/op.h"
#include "loop/denied.h"

/* --- what comes back in error --------------------------------------------------------- */

/* Fails op because it cannot go on, and says what was done of it before. */
static void fail_rest_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why)
{
	struct mrf_why more = *why;

	mrf_lock_held(&peer->ep->lock);
	if (op->acked && op->type->kind != MRF_OP_READ && op->type->kind != MRF_OP_RPC)
		mrf_why_set(&more, why->err, why->code,
			    "%" PRIu64 " of %" PRIu64 " bytes were done, then: %s", op->acked,
			    op->total, why->text);
	mrf_op_fail_locked(peer->ep, op, more.err, more.code, more.text);
}

/* op cannot go on. What it has in flight comes back first: op fails then, for the same reason. */
static void halt_op_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_op_leave_locked(op);
	if (!op->inflight) {
		fail_rest_locked(peer, op, why);
		return;
	}
	op->fatal = MRF_WC_OTHER;
	op->stopped = true;
	op->why = *why;
}

static const struct cause {
	int err;
	int code;
	const char *text;
} causes[] = {
	[MRF_WC_FLUSHED] = { FI_ECONNRESET, 4112, "the peer went away" },
	[MRF_WC_LOCAL] = { FI_EFAULT, 4110,
			   "the local buffer's registration does not allow this access (its "
			   "region was closed, or has another size)" },
	[MRF_WC_UNSENT] = { FI_ENETDOWN, 4114,
			    "the device cannot send, because its link is down or there is no "
			    "route" },
	[MRF_WC_TIMEOUT] = { FI_ETIMEDOUT, 4111, "there is no answer" },
	[MRF_WC_DENIED] = { FI_EACCES, 5203,
			    "the kernel takes no more work requests from this process (or "
			    "thread), whose credentials have changed since it opened the domain" },
	[MRF_WC_OTHER] = { FI_EIO, 4113, "the device reported an error on the connection" },
};

static const struct cause always_flushed = {
	FI_ECONNRESET, 4116,
	"the connection broke each time that the access was tried, and nothing says why"
};

static const struct cause *cause_of(const struct mrf_op *op)
{
	if (op->fatal == MRF_WC_FLUSHED && op->timeouts > MRF_TIMEOUTS)
		return &always_flushed;
	return &causes[op->fatal];
}

/* Of an access whose own buffer was at fault it is known, unless the device had sent it before. */
static bool may_have_been_done_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	return op->fatal != MRF_WC_LOCAL ||
	       (peer->conn->behind_ran && op->type->kind != MRF_OP_READ);
}

void mrf_peer_op_fatal_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	const struct cause *cause = cause_of(op);
	struct mrf_why why = op->why;
	char addr[64];

	mrf_lock_held(&peer->ep->lock);
	if (op->stopped) {
		fail_rest_locked(peer, op, &why);
		return;
	}
	mrf_why_set(&why, cause->err, cause->code, "%s: %s%s",
		    mrf_addr_text(&peer->addr, addr, sizeof(addr)), cause->text,
		    may_have_been_done_locked(peer, op)
			    ? ": the access may or may not have been done"
			    : "");
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_op_fail_locked(peer->ep, op, why.err, why.code, why.text);
}

void mrf_peer_doubt_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->fatal = op->doubt;
	op->doubt = MRF_WC_OK;
	mrf_peer_op_fatal_locked(peer, op);
}

void mrf_peer_again_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (op->type->again)
		op->type->again(peer->ep, op);
	op->pos = op->acked;
	op->resolved = false;
	op->empty_known = 0;
}

static void to_redo_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->posted = true;
	if (op->queued)
		return;
	op->queued = true;
	mrf_list_add_tail(&op->node, &peer->redo);
}

static void requeue_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_peer_again_locked(peer, op);
	op->imm_posted = false;
	to_redo_locked(peer, op);
}

/*
 * A read may be done again; what a write did is not known here, so it is not. A flush may be the
 * fault of any operation that was in flight. So each is alone the next time, and fails in the end
 * if it always comes back.
 */
static void lost_locked(struct mrf_peer *peer, struct mrf_op *op, enum mrf_wc_status status)
{
	bool flush = peer->conn->cause == MRF_WC_FLUSHED, again = op->timeouts < MRF_TIMEOUTS;

	mrf_lock_held(&peer->ep->lock);
	op->fence |= flush;
	op->timeouts += flush || status != MRF_WC_OK;
	if (op->type->kind == MRF_OP_READ && again) {
		op->ask_first = true;
		op->stamp = ++peer->ep->clock;
		mrf_resolve_forget_locked(op);
		requeue_locked(peer, op);
		return;
	}
	if (status == MRF_WC_OK)
		status = peer->conn->cause;
	if ((again || !flush) && mrf_doubt_locked(peer->conn, op, status))
		to_redo_locked(peer, op);
	else
		op->fatal = status;
}

void mrf_peer_refused_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_info(FI_LOG_EP_DATA,
		 "the peer's kernel refused an operation (%u): the key is asked about anew",
		 op->refused + 1u);
	peer->losses = 0;
	op->refused++;
	op->ask_first = true;
	op->stamp = ++peer->ep->clock;
	mrf_resolve_forget_locked(op);
}

void mrf_peer_no_post_locked(struct mrf_peer *peer, struct mrf_op *op, int ret)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(&why, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, "%s", MRF_NOT_TAKEN);
	halt_op_locked(peer, op, &why);
}

/* The work request that broke the connection. */
static void culprit_locked(struct mrf_peer *peer, struct mrf_op *op, enum mrf_wc_status cause)
{
	mrf_lock_held(&peer->ep->lock);
	switch (cause) {
	case MRF_WC_REFUSED:
		mrf_peer_refused_locked(peer, op);
		requeue_locked(peer, op);
		break;
	case MRF_WC_LOCAL:
		op->fatal = cause;
		break;
	default:
		lost_locked(peer, op, cause);
	}
}

bool mrf_conn_stopped_there_locked(const struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return (conn->cause == MRF_WC_REFUSED || conn->cause == MRF_WC_LOCAL ||
		conn->cause == MRF_WC_UNSENT) &&
	       !conn->behind_ran;
}

/* One that was flushed behind the first failure. */
static void follower_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (mrf_conn_stopped_there_locked(peer->conn)) {
		requeue_locked(peer, op);
		return;
	}
	switch (peer->conn->cause) {
	case MRF_WC_REFUSED:
	case MRF_WC_LOCAL:
	case MRF_WC_UNSENT:
		if (mrf_doubt_locked(peer->conn, op, MRF_WC_OTHER))
			to_redo_locked(peer, op);
		else if (op->type->kind == MRF_OP_READ)
			requeue_locked(peer, op);
		else
			lost_locked(peer, op, MRF_WC_OTHER);
		break;
	case MRF_WC_DENIED:
		op->fatal = MRF_WC_DENIED;
		break;
	default:
		lost_locked(peer, op, MRF_WC_OK);
	}
}

/*
 * Linux 6.12 reports a bad local buffer as a flush, and with it all that was in flight, be it
 * done already. Nobody else broke the queue pair: find out whose buffer it was. The first
 * completion that failed is off the ring already.
 */
static void blame_locked(struct mrf_conn *conn)
{
	const struct mrf_ep *ep = conn->peer->ep;
	unsigned i;

	mrf_lock_held(&conn->peer->ep->lock);
	for (i = conn->head - 1; i != conn->tail; i++) {
		struct mrf_op *op = conn->ring[i % MRF_CONN_RING].op;

		if (!op || mrf_local_open(&ep->buf, &op->local))
			continue;
		conn->cause = MRF_WC_LOCAL;
		conn->blamed = op;
		return;
	}
}

/*
 * May what is behind op, the first that failed, have run? The target carries out in order what
 * it has not carried out before; and what comes back from a read may find its buffer closed
 * after the target went on. (It does not look again at what a write or an atomic operation names
 * that is sent a second time, but it does so for a read.)
 *
 * The kernel is asked under the lock, once for each connection that breaks, because what has
 * come back behind op is waiting for the verdict. That takes some 20 us, however many queue
 * pairs there are (verbs/vagain.h).
 */
static bool may_have_run_locked(const struct mrf_conn *conn, const struct mrf_op *op)
{
	bool read = op && op->type->kind == MRF_OP_READ;

	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->cause == MRF_WC_LOCAL && read)
		return true;
	if (conn->cause == MRF_WC_REFUSED && !read)
		return false;
	return mrf_vdev_sent_again(conn->peer->ep->domain->vdev, &conn->retries);
}

/* The first failure of a connection: what broke it? */
static void diagnose_locked(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc)
{
	mrf_lock_held(&conn->peer->ep->lock);
	conn->cause = wc->status;
	mrf_info(FI_LOG_EP_DATA, "connection broken: %s", mrf_wc_status_text(wc->raw_status));
	if (wc->status == MRF_WC_FLUSHED && conn->peer->state != MRF_PEER_CUT)
		blame_locked(conn);
	/* Linux 6.1 has one status for both. */
	if (wc->status == MRF_WC_UNSENT && op && !mrf_local_open(&conn->peer->ep->buf, &op->local))
		conn->cause = MRF_WC_LOCAL;
	if (conn->cause == MRF_WC_REFUSED || conn->cause == MRF_WC_LOCAL ||
	    conn->cause == MRF_WC_UNSENT)
		conn->behind_ran = may_have_run_locked(conn, conn->blamed ? conn->blamed : op);
	mrf_doubt_begin_locked(conn, op);
}

/* One that came back; the first of all decides. */
static void flushed_locked(struct mrf_conn *conn, struct mrf_op *op, bool first)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->blamed && conn->blamed != op) {
		/* Ahead of the one to blame: it may have run. */
		lost_locked(peer, op, MRF_WC_OTHER);
	} else if (first || conn->blamed) {
		culprit_locked(peer, op, conn->cause);
		conn->blamed = NULL;
	} else {
		follower_locked(peer, op);
	}
}

void mrf_conn_failed_locked(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc)
{
	bool first = conn->cause == MRF_WC_OK;

	mrf_lock_held(&conn->peer->ep->lock);
	if (first)
		diagnose_locked(conn, op, wc);
	if (op && op->fatal == MRF_WC_OK)
		flushed_locked(conn, op, first);
	mrf_doubt_next_locked(conn, conn->ring[(conn->head - 1) % MRF_CONN_RING].len);
	mrf_peer_break_locked(conn->peer);
}

/* --- what waits ---------------------------------------------------------------------------- */

void mrf_peer_fail_locked(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(&why, err, code, "%s", text);
	if (!mrf_list_empty(&peer->queue))
		mrf_refuse(err, FI_LOG_EP_DATA, (unsigned)code, "%s", text);
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		/* Its replies are on the way. */
		if (op->awaiting)
			continue;
		if (op->doubt) {
			mrf_op_leave_locked(op);
			mrf_peer_doubt_locked(peer, op);
		} else {
			halt_op_locked(peer, op, &why);
		}
	}
	if (peer->gone)
		mrf_peer_kick_locked(peer);
}

void mrf_peer_fail_addr_locked(struct mrf_peer *peer, int err, int code, const char *why)
{
	char addr[64], text[MRF_ERR_TEXT];

	mrf_lock_held(&peer->ep->lock);
	snprintf(text, sizeof(text), "%s: %s", mrf_addr_text(&peer->addr, addr, sizeof(addr)), why);
	mrf_peer_fail_locked(peer, err, code, text);
}

void mrf_peer_denied_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	/* Of this thread alone, or of the agent's as well? */
	peer->ep->agent->suspect = true;
	mrf_peer_fail_locked(peer, FI_EACCES, 5204, MRF_DENIED_TEXT);
}

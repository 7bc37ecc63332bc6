/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A work request fails: finds what broke the connection and where the work request stood, and
 * does with its operation what the table of ep/model/fate.h says.
 *
 * On rxe a refusal by the target's kernel puts the queue pairs at both ends into the
 * error state, without an event at the target, and flushes what was queued behind it.
 * Operations that are done again are posted in order on the next connection.
 *
 * When an acknowledgement is lost, the device sends again, from the first request that was
 * not acknowledged. All behind it may have run long ago, and now a local region that was
 * closed meanwhile, or a link that went down, makes it fail (LOC_PROT_ERR, LOC_QP_OP_ERR;
 * on Linux 6.12 a flush). A target does not look again at what a repeated write or atomic
 * operation names; it does carry out a read again, and refuses it if the region is closed
 * by now.
 *
 * The kernel counts how often a device begins to send again (completer_retry_err,
 * verbs/vagain.c). The count is taken when a connection is made. If it has changed when
 * the connection breaks, or is not known, what is behind the failure may have run, and so
 * may what is behind a read whose own buffer was closed: that shows only when the data come
 * back and find no place. The count is the whole device's, so it may be for what others
 * lost.
 *
 * LOC_QP_OP_ERR alone does not tell a local buffer from a missing route: the buffer is
 * blamed only if the operation's local region is closed.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/doubt.h"
#include "ep/tx/fail.h"
#include "ep/tx/fatal.h"
#include "ep/tx/rpc.h"
#include "loop/denied.h"

/* --- what comes back in error --------------------------------------------------------- */

static void to_redo_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	op->broken.posted = true;
	if (op->queued)
		return;
	op->queued = true;
	mrf_list_add_tail(&op->node, &peer->redo);
}

static void ask_anew_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	op->ask_first = true;
	op->stamp = ++peer->ep->clock;
	mrf_resolve_forget_locked(op);
}

void mrf_fail_refused_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_info(FI_LOG_EP_DATA,
		 "the peer's kernel refused an operation (%u): the key is asked about anew",
		 op->broken.refused + 1u);
	peer->dial.losses = 0;
	op->broken.refused++;
	ask_anew_locked(peer, op);
}

static void requeue_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_fate *how)
{
	if (how->refused)
		mrf_fail_refused_locked(peer, op);
	else if (how->anew)
		ask_anew_locked(peer, op);
	mrf_op_again_locked(op);
	op->imm.posted = false;
	to_redo_locked(peer, op);
}

struct mrf_fate mrf_fail_fate_locked(struct mrf_op *op, enum mrf_wc_status cause,
				     enum mrf_place place, enum mrf_op_kind kind, bool asks)
{
	struct mrf_fate fate = mrf_fate(cause, place, kind, asks,
					op->broken.timeouts - op->broken.counted < MRF_TIMEOUTS);

	mrf_lock_held(&op->peer->ep->lock);
	op->broken.timeouts += fate.counts && !op->broken.counted;
	op->broken.counted |= fate.counts;
	return fate;
}

/* A work request of op, which stood at that place, has come back. */
static void came_back_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_place place)
{
	struct mrf_peer *peer = conn->peer;
	/* What goes by way of the peer's ring may always be done again, like a read. */
	bool repeats = mrf_rpc_repeats(op);
	struct mrf_fate fate =
		mrf_fail_fate_locked(op, conn->cause, place, repeats ? MRF_OP_READ : op->type->kind,
				     conn->asks && !op->awaiting && !repeats);

	op->fence |= fate.alone;
	switch (fate.deed) {
	case MRF_AGAIN:
		requeue_locked(peer, op, &fate);
		break;
	case MRF_ASK:
		mrf_doubt_locked(conn, op, fate.status);
		to_redo_locked(peer, op);
		break;
	case MRF_FATAL:
		op->broken.fatal = fate.status;
	}
}

void mrf_fail_post_locked(struct mrf_peer *peer, struct mrf_op *op, int ret)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(&why, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, "%s", MRF_NOT_TAKEN);
	mrf_fatal_halt_locked(peer, op, &why);
}

/* --- what broke the connection? ---------------------------------------------------------- */

/*
 * Linux 6.12 reports a bad local buffer as a flush, and with it all that was in flight, even if
 * it was already done. Nobody else broke the queue pair: find out whose buffer it was. The first
 * completion that failed is off the ring already.
 */
static void blame_locked(struct mrf_conn *conn)
{
	const struct mrf_ep *ep = conn->peer->ep;
	unsigned i;

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
 * come back behind op is waiting for the fate. That takes some 20 us, however many queue
 * pairs there are (verbs/vagain.c).
 */
static bool may_have_run_locked(const struct mrf_conn *conn, const struct mrf_op *op)
{
	bool read = op && op->type->kind == MRF_OP_READ;

	if (conn->cause == MRF_WC_LOCAL && read)
		return true;
	if (conn->cause == MRF_WC_REFUSED && !read)
		return false;
	return mrf_vdev_sent_again(conn->peer->ep->domain->vdev, &conn->retries);
}

/* The first failure of a connection: what broke it? */
static void diagnose_locked(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc)
{
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

/* Where the work request of op (NULL: a message) stood that has come back. */
static enum mrf_place place_of_locked(struct mrf_conn *conn, const struct mrf_op *op, bool first)
{
	bool blamed = conn->blamed;

	if (blamed && conn->blamed != op)
		return MRF_AHEAD;
	conn->blamed = NULL;
	if (first || blamed)
		return MRF_FIRST;
	return conn->behind_ran ? MRF_BEHIND_RAN : MRF_BEHIND;
}

/* The peer has replied that it did all of op; what was written to its ring is back later. */
static bool is_replied_locked(const struct mrf_op *op)
{
	return mrf_rpc_repeats(op) && op->acked == op->total && !op->queued && !op->imm.has;
}

enum mrf_place mrf_fail_conn_locked(struct mrf_conn *conn, struct mrf_op *op,
				    const struct mrf_wc *wc)
{
	bool first = conn->cause == MRF_WC_OK;
	enum mrf_place place;

	mrf_lock_held(&conn->peer->ep->lock);
	if (first)
		diagnose_locked(conn, op, wc);
	place = place_of_locked(conn, op, first);
	if (op && op->broken.fatal == MRF_WC_OK && !is_replied_locked(op))
		came_back_locked(conn, op, place);
	mrf_doubt_next_locked(conn, conn->ring[(conn->head - 1) % MRF_CONN_RING].len);
	mrf_conn_break_locked(conn->peer);
	return place;
}

/* --- what waits ---------------------------------------------------------------------------- */

void mrf_fail_peer_locked(struct mrf_peer *peer, int err, int code, const char *text)
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
		if (op->broken.doubt)
			mrf_fatal_doubt_locked(peer, op);
		else
			mrf_fatal_halt_locked(peer, op, &why);
	}
	if (peer->gone)
		mrf_conn_kick_locked(peer);
}

void mrf_fail_addr_locked(struct mrf_peer *peer, int err, int code, const char *why)
{
	char addr[64], text[MRF_ERR_TEXT];

	mrf_lock_held(&peer->ep->lock);
	snprintf(text, sizeof(text), "%s: %s", mrf_addr_text(&peer->addr, addr, sizeof(addr)), why);
	mrf_fail_peer_locked(peer, err, code, text);
}

void mrf_fail_denied_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	/* Of this thread alone, or of the agent's as well? */
	peer->ep->agent->suspect = true;
	mrf_fail_peer_locked(peer, FI_EACCES, 5204, MRF_DENIED_TEXT);
}

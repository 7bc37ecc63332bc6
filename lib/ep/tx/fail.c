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
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/cause.h"
#include "ep/tx/delivery.h"
#include "ep/tx/fail.h"
#include "ep/tx/offered.h"
#include "ep/tx/rpc.h"
#include "ep/tx/settle.h"

/* --- in doubt: which packets were lost -------------------------------------------------- */

/*
 * Linux 6.1 answers a read of several packets short, without an error, when the memory that it
 * reads from is no longer pinned, and puts the target's queue pair into error. The initiator
 * learns nothing and sends again until its retries are over (3.8 s). What was posted behind the
 * read has not run; but if the link had been down instead, it might have. The number of the
 * packet that the target's queue pair expected next tells these apart (measured on 6.1, 6.12
 * and newer: it is that of the read, and stays when the queue pair is put into error).
 *
 * To ask takes a connection, which takes up to FI_MRFAB_CONN_TIMEOUT if the peer's machine is
 * gone. So where nobody answers, only what is behind a read asks, which is done again anyway.
 */

/* The work request that has just come back. */
static const struct mrf_posted *last_back(const struct mrf_conn *conn)
{
	return &conn->ring[(conn->head - 1) % MRF_CONN_RING];
}

/* Is op (NULL: a message) one that is done again, whatever the target has done? */
static bool is_repeated(const struct mrf_op *op)
{
	return op && mrf_kind_arrives(op->type->kind);
}

/*
 * The connection's first failure is that of op's work request (NULL: a message), which is off
 * the ring: finds which packets it had. conn->cause is set.
 */
static void begin_doubt_locked(struct mrf_conn *conn, const struct mrf_op *op)
{
	unsigned i;

	if (conn->peer->kind == MRF_CONN_LINE) {
		/* The next welcome says so anyway, and frames have numbers. */
		conn->asks = true;
		return;
	}
	conn->asks = conn->mtu != UINT32_MAX && (conn->cause != MRF_WC_TIMEOUT || is_repeated(op));
	conn->psn += conn->head - 1 + conn->more;
	for (i = conn->head - 1; i != conn->tail; i++)
		conn->psn -= conn->ring[i % MRF_CONN_RING].more;
}

/*
 * Nobody here knows whether the work request of op, a write or an atomic operation, that has just
 * come back was done: op is in doubt now. conn->asks is set.
 * status: what is said of op if the target does not know it, either; neither OK nor LOCAL.
 */
static void doubt_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_wc_status status)
{
	if (conn->peer->kind == MRF_CONN_ACCESS) {
		if (!op->doubt)
			op->psn.from = conn->psn;
		op->psn.to = conn->psn + 1 + last_back(conn)->more;
	}
	op->doubt = (uint8_t)status;
	conn->peer->target.lost = conn->target_qpn;
}

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
	mrf_info(
		FI_LOG_EP_DATA,
		"the peer's kernel refused an operation (%u): the library asks about the key again",
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
	to_redo_locked(peer, op);
	mrf_settle_again_locked(op);
}

/* A target may end a line at any time, and has said that it does: nothing was wrong with the message. */
static bool was_ended(const struct mrf_peer *peer)
{
	return peer->kind == MRF_CONN_LINE && peer->state == MRF_PEER_CUT;
}

struct mrf_fate mrf_fail_fate_locked(struct mrf_op *op, enum mrf_wc_status cause,
				     enum mrf_standing stood, enum mrf_op_kind kind, bool asks)
{
	struct mrf_fate fate = mrf_fate(cause, stood, kind, asks,
					op->broken.timeouts - op->broken.counted < MRF_TIMEOUTS);

	mrf_lock_held(&op->peer->ep->lock);
	if (was_ended(op->peer))
		return fate;
	op->broken.timeouts += fate.counts && !op->broken.counted;
	op->broken.counted |= fate.counts;
	return fate;
}

/* A work request of op, which stood there, has come back. */
static void came_back_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_standing stood)
{
	struct mrf_peer *peer = conn->peer;
	bool again = mrf_rpc_again(op);
	struct mrf_fate fate =
		mrf_fail_fate_locked(op, conn->cause, stood, again ? MRF_OP_READ : op->type->kind,
				     conn->asks && !op->awaiting && !again);

	op->fence |= fate.alone ? MRF_FENCE_ALONE : 0;
	switch (fate.deed) {
	case MRF_AGAIN:
		requeue_locked(peer, op, &fate);
		break;
	case MRF_ASK:
		doubt_locked(conn, op, fate.status);
		to_redo_locked(peer, op);
		break;
	case MRF_FATAL:
		peer->dial.losses = 0;
		mrf_cause_fail_doubt_locked(op, fate.status);
	}
}

void mrf_fail_post_locked(struct mrf_op *op, int ret)
{
	struct mrf_why why;

	mrf_lock_held(&op->peer->ep->lock);
	if (ret == -FI_ECANCELED) {
		mrf_cause_fail_locked(op, MRF_WC_LOCAL, "");
		return;
	}
	if (ret == -FI_EOPNOTSUPP && op->type->kind == MRF_OP_SEND)
		mrf_why_set(
			&why, FI_EOPNOTSUPP, 4324,
			"the endpoint there takes no messages %s a tag: it was opened without %s",
			op->send.tagged ? "with" : "without",
			op->send.tagged ? "FI_TAGGED" : "FI_MSG");
	else
		mrf_why_set(&why, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, "%s", MRF_NOT_TAKEN);
	mrf_settle_fail_locked(op, &why);
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
	bool read = is_repeated(op);

	if (conn->cause == MRF_WC_LOCAL && read)
		return true;
	if (conn->cause == MRF_WC_REFUSED && !read)
		return false;
	return mrf_vdev_sent_again(conn->peer->ep->domain->vdev, &conn->retries);
}

/* Says what broke a connection, from its first failure. */
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
	begin_doubt_locked(conn, op);
}

/* Where the work request of op (NULL: a message) stood when it came back. */
static enum mrf_standing standing_of_locked(struct mrf_conn *conn, const struct mrf_op *op,
					    bool first)
{
	bool blamed = conn->blamed;

	if (blamed && conn->blamed != op)
		return MRF_AHEAD;
	conn->blamed = NULL;
	if (first || blamed)
		return MRF_FIRST;
	return conn->behind_ran ? MRF_BEHIND_RAN : MRF_BEHIND;
}

/*
 * Is there something of op that may not have been done? The peer may have replied that it did all
 * of it, although what was posted comes back later.
 */
static bool is_undone(const struct mrf_op *op)
{
	return !op->failed && (op->acked != op->total || op->imm.has);
}

enum mrf_standing mrf_fail_conn_locked(struct mrf_conn *conn, struct mrf_op *op,
				       const struct mrf_wc *wc)
{
	bool first = conn->cause == MRF_WC_OK;
	enum mrf_standing stood;

	mrf_lock_held(&conn->peer->ep->lock);
	if (first)
		diagnose_locked(conn, op, wc);
	stood = standing_of_locked(conn, op, first);
	if (op) {
		mrf_delivery_unawait_locked(op);
		mrf_offered_unawait_locked(op);
	}
	if (op && is_undone(op))
		came_back_locked(conn, op, stood);
	else if (op)
		mrf_settle_locked(op);
	/* The next one's packets follow its. */
	conn->psn += 1 + last_back(conn)->more;
	mrf_conn_break_locked(conn->peer);
	return stood;
}

/* --- what waits ---------------------------------------------------------------------------- */

void mrf_fail_peer_locked(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(&why, err, code, "%s", text);
	if (mrf_peer_has_work(peer))
		mrf_refuse(err, FI_LOG_EP_DATA, (unsigned)code, "%s", text);
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		/* The replies to it are on the way; or it is a mark, which needs no peer. */
		if (op->awaiting || op->fence & MRF_FENCE_MARK)
			continue;
		if (op->doubt)
			mrf_cause_fail_doubt_locked(op, (enum mrf_wc_status)op->doubt);
		else
			mrf_settle_fail_locked(op, &why);
	}
	mrf_offered_fail_all_locked(peer, &why);
	peer->line.gave_up = false;
	if (peer->gone || !mrf_list_empty(&peer->queue))
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
	/* The agent finds out whether its own thread is refused, too. */
	peer->ep->agent->suspect = true;
	mrf_fail_peer_locked(peer, FI_EACCES, 5204, MRF_DENIED_TEXT);
}

/* --- in doubt: the target has told ------------------------------------------------------- */

#define PSN_MASK 0xffffffu

/* Is the number of packet, or frame, a equal to that of b, or before it? */
static bool psn_upto(uint32_t a, uint32_t b)
{
	return ((b - a) & PSN_MASK) <= PSN_MASK / 2;
}

/* Its results would have come back with the acknowledgement. */
static void lose_results_locked(struct mrf_op *op)
{
	struct mrf_why why;

	mrf_why_set(&why, FI_ECONNRESET, 4115,
		    "the operation was done, but its results were lost with the connection to the "
		    "peer");
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_settle_fail_locked(op, &why);
}

enum left { GOES_ON, UNKNOWN, NO_RESULTS };

/* A part of op was done, or all of it. */
static enum left what_is_left(const struct mrf_op *op, bool all)
{
	switch (op->type->kind) {
	case MRF_OP_ATOMIC:
		/* Only the result of a compare-and-swap tells whether it has changed anything. */
		if (op->atomic.swapping || !all)
			return UNKNOWN;
		return op->atomic.family ? NO_RESULTS : GOES_ON;
	case MRF_OP_WRITE:
		/* Bytes may be written again, as long as not all were. */
		return all || !op->told ? GOES_ON : UNKNOWN;
	case MRF_OP_READ:
	case MRF_OP_RPC:
	case MRF_OP_SEND:
		break;
	}
	return all ? GOES_ON : UNKNOWN;
}

/* psn: the target's next packet, or the next frame of a line. */
static void settle_one_locked(struct mrf_op *op, uint32_t psn)
{
	bool none = psn_upto(psn, op->psn.from);
	bool all = psn_upto(op->psn.to, psn) && !op->again;

	/* A message: no more is tried. */
	if (none && op->type->kind == MRF_OP_SEND &&
	    mrf_cause_is_lasting(op, (enum mrf_wc_status)op->doubt)) {
		mrf_cause_fail_locked(op, (enum mrf_wc_status)op->doubt,
				      ": the message has not come");
		return;
	}
	switch (none ? GOES_ON : what_is_left(op, all)) {
	case UNKNOWN:
		mrf_cause_fail_doubt_locked(op, (enum mrf_wc_status)op->doubt);
		return;
	case NO_RESULTS:
		lose_results_locked(op);
		return;
	case GOES_ON:
		break;
	}
	op->doubt = MRF_WC_OK;
	if (all)
		op->peer->dial.losses = 0;
	if (all && op->type->came) {
		op->type->came(op->peer, op);
		return;
	}
	if (all)
		op->acked = op->pos;
	op->again |= !all;
	mrf_settle_locked(op);
}

void mrf_fail_settle_came_locked(struct mrf_peer *peer)
{
	uint32_t came = (uint32_t)peer->line.taken;

	mrf_lock_held(&peer->ep->lock);
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (op->doubt && psn_upto(op->psn.to, came))
			settle_one_locked(op, came);
	}
}

void mrf_fail_settle_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	peer->target.lost = 0;
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (!op->doubt)
			continue;
		if (conn->told)
			settle_one_locked(op, conn->told_psn);
		else
			mrf_cause_fail_doubt_locked(op, (enum mrf_wc_status)op->doubt);
	}
}

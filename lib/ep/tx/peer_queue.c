/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: posting in order, and completions. */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/link/bulk.h"
#include "ep/link/conn.h"
#include "ep/link/far.h"
#include "ep/model/account.h"
#include "ep/resolve/ask.h"
#include "ep/resolve/resolve.h"
#include "ep/msg/arrive.h"
#include "ep/msg/reverse.h"
#include "ep/tx/access_op.h"
#include "ep/tx/ahead.h"
#include "ep/tx/chores.h"
#include "ep/tx/delivery.h"
#include "ep/tx/fail.h"
#include "ep/tx/far_op.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/order.h"
#include "ep/tx/outlet.h"
#include "ep/tx/pairs.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/rpc.h"
#include "ep/tx/settle.h"
#include "ep/tx/sync.h"

/* --- posting ------------------------------------------------------------------------------- */

void mrf_peer_wait_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (!mrf_conn_in_flight_locked(peer->conn) && mrf_far_is_idle(peer->conn))
		return;
	if (peer->ep->starting)
		peer->ep->waits = true;
	else
		mrf_conn_watch_locked(peer);
}

/* Only completions make room: if none is expected, there will be no room. */
static bool is_full_locked(const struct mrf_peer *peer, int ret)
{
	return ret == -FI_EAGAIN &&
	       (mrf_conn_in_flight_locked(peer->conn) || mrf_rpc_awaited_locked(peer->conn) ||
		!mrf_far_is_idle(peer->conn));
}

void mrf_peer_no_ask_locked(struct mrf_peer *peer, int ret)
{
	mrf_lock_held(&peer->ep->lock);
	if (is_full_locked(peer, ret))
		mrf_conn_watch_locked(peer);
	else
		mrf_fail_peer_locked(peer, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, MRF_NOT_TAKEN);
}

static void prepared_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why);

/*
 * There may be more to copy because of what has completed. The agent posts what that allows, for this
 * thread has a device to keep busy.
 */
static void copy_more_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	peer->chores.unprepared = op; /* still, */
	op->chore = 1;		      /* so that it does not end */
	peer->ep->posts_later = true;
	mrf_peer_progress_locked(peer->ep);
	peer->ep->posts_later = false;
	op->chore = 0;
	peer->chores.unprepared = NULL;
	mrf_ahead_copy_locked(peer, op, prepared_locked);
}

/*
 * The operation may have failed meanwhile for another reason. If the thread goes on with the next
 * chunk, the agent posts this one: posting may take a device as long as the transfer.
 */
static void prepared_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	if (why && !mrf_ahead_tries_again_locked(peer, op)) {
		mrf_settle_fail_locked(op, why);
	} else {
		if (!why && op->queued && op->local.kind == MRF_LOCAL_STAGED)
			copy_more_locked(peer, op);
		mrf_settle_locked(op);
	}
	if (!peer->chores.unprepared)
		mrf_peer_advance_locked(peer);
	mrf_conn_kick_locked(peer);
}

/* Chunks are copied ahead, while those before them are in flight. */
static bool in_reach_staged_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	bool reaches = mrf_local_reaches(&op->local, op->pos);

	mrf_ahead_copy_locked(peer, op, prepared_locked);
	if (!reaches && !peer->chores.unprepared)
		mrf_peer_wait_locked(peer);
	return reaches;
}

/* False: what is to be posted next has to be brought within reach first, and will be. */
static bool in_reach_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	if (mrf_likely(!op->local.rest) || op->pos == op->total || !mrf_kind_moves(op->type->kind))
		return true;
	if (op->local.kind == MRF_LOCAL_STAGED)
		return in_reach_staged_locked(peer, op);
	if (mrf_local_reaches(&op->local, op->pos))
		return true;
	/* The bytes of requests that have gathered are still to be sent from there. */
	if (!op->inflight && !op->awaiting) {
		if (!peer->chores.unprepared)
			mrf_chores_prepare_locked(peer->ep, op, prepared_locked);
	} else {
		mrf_peer_wait_locked(peer);
	}
	return false;
}

/* Is the target ready for more, and the line for op? */
static bool lets_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	switch (peer->kind) {
	case MRF_CONN_ACCESS:
		return mrf_far_lets_locked(peer, op);
	case MRF_CONN_KINDS:
		break;
	case MRF_CONN_LINE:
		return mrf_outlet_lets_locked(peer) && mrf_offer_lets_locked(peer, op);
	}
	return true;
}

/* 0 when the queue's first should be looked at (again); -FI_EAGAIN when it has to wait. */
static int post_op_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	/* The bytes of an offer are posted when the target asks for them. */
	while (!mrf_account_posted(op) && !op->offered) {
		int ret;

		if (mrf_unlikely(peer->state != MRF_PEER_READY))
			return -FI_EAGAIN;
		if (!mrf_conn_room_locked(peer->conn)) {
			mrf_conn_await_room_locked(peer);
			return -FI_EAGAIN;
		}
		if (!mrf_rpc_lets_locked(peer->conn, op) || !in_reach_locked(peer, op) ||
		    !lets_locked(peer, op))
			return -FI_EAGAIN;
		ret = op->type->post(peer, op);
		if (mrf_likely(!ret))
			continue;
		/* The key has changed: it is resolved again once nothing is in flight. */
		op->resolved = ret == -FI_EAGAIN && mrf_rpc_repeats(op);
		if (ret == -FI_ENOKEY && !op->out)
			return 0;
		if (ret != -FI_ENOKEY && !is_full_locked(peer, ret)) {
			mrf_fail_post_locked(op, ret);
			return 0;
		}
		if (!mrf_rpc_awaited_locked(peer->conn))
			mrf_peer_wait_locked(peer);
		return -FI_EAGAIN;
	}
	/* The operation stays in the queue until its replies, and their bytes, have come. */
	if (mrf_likely(!mrf_rpc_waits(op)))
		mrf_op_leave_locked(op);
	return 0;
}

/*
 * A fenced operation may send what the operations before it bring back, so these bytes have to be
 * there, too.
 */
static bool fence_holds_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	if (mrf_likely(!op->fence || op->pos))
		return false;
	if (op->fence & (MRF_FENCE_ALONE | MRF_FENCE_ALL)) {
		if (mrf_conn_in_flight_locked(peer->conn) || mrf_rpc_awaited_locked(peer->conn) ||
		    !mrf_far_is_idle(peer->conn)) {
			mrf_peer_wait_locked(peer);
			return true;
		}
		peer->chores.fenced = peer->chores.uncompleted;
		if (peer->chores.fenced)
			return true;
	}
	if (!mrf_order_holds_locked(peer, op)) {
		if (mrf_order_is_sync(op))
			mrf_sync_begin_locked(op);
		return false;
	}
	if (op->fence & MRF_FENCE_MARK)
		mrf_peer_wait_locked(peer);
	return true;
}

/* Marks need no connection. */
static void end_marks_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while ((node = mrf_list_first(&peer->queue))) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		peer->chores.fenced = peer->chores.uncompleted;
		if (!(op->fence & MRF_FENCE_MARK) || mrf_order_holds_locked(peer, op))
			return;
		mrf_settle_locked(op);
	}
}

/* True when the next operation may be looked at. */
static bool step_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_why why;

	/*
	 * A thread is working on the first operation, which must be neither posted nor refused
	 * meanwhile, unless the thread is copying another chunk, of this operation or of one behind it.
	 */
	if (mrf_unlikely(peer->chores.unprepared != NULL) && !peer->chores.ahead)
		return false;
	if (mrf_unlikely(mrf_rpc_awaited_locked(peer->conn)))
		mrf_access_joins_locked(peer, op);
	if (!mrf_rpc_lets_locked(peer->conn, op))
		return false;
	if (fence_holds_locked(peer, op))
		return false;
	/* What is out may fail, or show that other keys are needed. */
	if (mrf_unlikely(op->again) || (!op->resolved && op->out)) {
		mrf_peer_wait_locked(peer);
		return false;
	}
	switch (mrf_resolve_op_locked(op, &why)) {
	case MRF_RESOLVE_WAIT:
		return false;
	case MRF_RESOLVE_FAIL:
		mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
		mrf_settle_fail_locked(op, &why);
		return true;
	case MRF_RESOLVED:
		break;
	}
	if (!op->total && !op->imm.has) {
		mrf_settle_locked(op);
		return true;
	}
	return !post_op_locked(peer, op);
}

/* Questions for operations that are not yet first, so that answers come together. */
static void ask_ahead_locked(struct mrf_peer *peer)
{
	struct mrf_why why;
	int n = 0, ret;

	mrf_list_each (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (op->awaiting)
			continue;
		if (++n > MRF_ASKS)
			break;
		mrf_resolve_op_locked(op, &why);
	}
	ret = mrf_ask_send_locked(peer);
	if (mrf_unlikely(ret))
		mrf_peer_no_ask_locked(peer, ret);
}

static void advance_one_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	if (peer->state != MRF_PEER_READY) {
		if (peer->state == MRF_PEER_IDLE && mrf_peer_has_work(peer))
			mrf_conn_kick_locked(peer);
		end_marks_locked(peer);
		if (mrf_unlikely(peer->gone && mrf_list_empty(&peer->queue)))
			mrf_conn_kick_locked(peer);
		return;
	}
	if (mrf_unlikely(peer->line.asks || peer->conn->bulk))
		mrf_offer_advance_locked(peer);
	do {
		do {
			while (mrf_likely(peer->state == MRF_PEER_READY) &&
			       (node = mrf_ahead_next_locked(peer)) &&
			       step_locked(peer, mrf_list_entry(node, struct mrf_op, node)))
				;
		} while (mrf_unlikely(mrf_rpc_awaited_locked(peer->conn)) &&
			 !mrf_rpc_flush_locked(peer));
		if (mrf_unlikely(peer->state != MRF_PEER_READY))
			return;
		if (!mrf_list_empty(&peer->queue))
			ask_ahead_locked(peer);
		else
			mrf_ask_unwant_locked(peer);
	} while (mrf_ask_release_locked(peer) && !mrf_list_empty(&peer->queue));
	/* The leases end when all is done, whether or not the application looks. */
	if (mrf_unlikely(peer->known.leases && !peer->known.lately &&
			 mrf_conn_in_flight_locked(peer->conn)))
		mrf_conn_watch_locked(peer);
	/* A peer that was removed from the address vector has done its last operation. */
	if (mrf_unlikely(peer->gone && mrf_list_empty(&peer->queue) &&
			 mrf_list_empty(&peer->undelivered) && mrf_list_empty(&peer->offered) &&
			 mrf_list_empty(&peer->chores.list) && !peer->chores.unprepared &&
			 !peer->lifted && mrf_bulk_is_idle(peer->conn) &&
			 mrf_far_is_idle(peer->conn) && !mrf_conn_in_flight_locked(peer->conn)))
		mrf_conn_kick_locked(peer);
}

void mrf_peer_advance_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	advance_one_locked(peer);
	while (mrf_unlikely((node = mrf_list_pop(&peer->ep->woken)) != NULL))
		advance_one_locked(mrf_list_entry(node, struct mrf_peer, woken));
}

/* --- completions --------------------------------------------------------------------------- */

static __attribute__((noinline)) void failed_locked(struct mrf_conn *conn, struct mrf_op *op,
						    const struct mrf_wc *wc)
{
	mrf_lock_held(&conn->peer->ep->lock);
	mrf_rpc_unsent_locked(conn, conn->head - 1, mrf_fail_conn_locked(conn, op, wc));
}

static __attribute__((noinline)) void go_on_locked(struct mrf_peer *peer)
{
	if (peer->ep->posts_later)
		mrf_conn_kick_locked(peer);
	else
		mrf_peer_advance_locked(peer);
}

static void head_completed_locked(struct mrf_conn *conn, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_posted *posted = &conn->ring[conn->head % MRF_CONN_RING];
	struct mrf_op *op = posted->op;

	conn->head++;
	peer->ep->scq_used--;
	if (op)
		op->inflight--;
	if (mrf_unlikely(wc->status != MRF_WC_OK)) {
		failed_locked(conn, op, wc);
	} else if (op) {
		op->acked += posted->bytes;
		peer->dial.losses = 0;
		mrf_settle_locked(op);
	}
	if (mrf_unlikely(mrf_peer_is_broken(peer->state))) {
		if (!mrf_conn_in_flight_locked(conn))
			mrf_conn_kick_locked(peer);
	} else if (mrf_unlikely((!mrf_list_empty(&peer->queue) && !mrf_outlet_holds_first(peer)) ||
				peer->gone || peer->known.leases)) {
		go_on_locked(peer);
	}
}

void mrf_peer_give_up_locked(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	struct mrf_wc wc = { .wr_id = conn->owner.id, .status = MRF_WC_TIMEOUT };

	mrf_lock_held(&ep->lock);
	while (mrf_conn_in_flight_locked(conn))
		head_completed_locked(conn, &wc);
	/* Completions that come late find no connection. */
	if (ep->last == conn)
		ep->last = NULL;
}

#define BATCH 16

/* There is room in the queue (again): peers that wait for it go on. */
static void feed_locked(struct mrf_ep *ep)
{
	struct mrf_list *node;

	/* A peer that uses all the room goes to the end of the line. */
	while (ep->scq_used < MRF_EP_SCQ && (node = mrf_list_pop(&ep->starved)))
		mrf_peer_advance_locked(mrf_list_entry(node, struct mrf_peer, starved));
}

/* Does it belong to a pair? */
static bool is_of_pair_locked(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = mrf_pairs_completed_locked(ep, wc);

	mrf_lock_held(&ep->lock);
	/* A fence may have waited for it. */
	if (peer && !mrf_list_empty(&peer->queue))
		mrf_peer_advance_locked(peer);
	return peer;
}

static void completed_locked(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	if (mrf_unlikely(!ep->last || ep->last->owner.id != wc->wr_id)) {
		if (mrf_unlikely(ep->bulks.count || ep->fars.count) && is_of_pair_locked(ep, wc))
			return;
		ep->last = mrf_idmap_find(&ep->conns, wc->wr_id);
		/*
		 * The device completes it although the peer has given up everything
		 * (mrf_peer_give_up_locked).
		 */
		if (ep->last && !mrf_conn_in_flight_locked(ep->last))
			ep->last = NULL;
	}
	if (mrf_likely(ep->last != NULL))
		head_completed_locked(ep->last, wc);
}

/* A bound, because other code may write to the queue's memory by mistake. */
#define ROUNDS (MRF_EP_SCQ / BATCH + 1)

static MRF_ALWAYS_INLINE void progress_locked(struct mrf_ep *ep)
{
	int i, n, left = ROUNDS;
	struct mrf_wc wc[BATCH];

	mrf_lock_held(&ep->lock);
	do {
		n = mrf_vcq_poll(ep->scq, wc, BATCH);
		for (i = 0; i < n; i++)
			completed_locked(ep, &wc[i]);
	} while (mrf_unlikely(n == BATCH) && --left);
	if (mrf_unlikely(!mrf_list_empty(&ep->starved)))
		feed_locked(ep);
}

void mrf_peer_progress_locked(struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	progress_locked(ep);
	if (mrf_unlikely(ep->lines != NULL))
		mrf_arrive_poll_locked(ep->lines);
}

/* The application has begun what it wanted to begin. */
static __attribute__((noinline)) void ask_gathered_locked(struct mrf_ep *ep)
{
	struct mrf_list *node;

	ep->begun = false;
	while ((node = mrf_list_pop(&ep->gathered)))
		mrf_peer_advance_locked(mrf_list_entry(node, struct mrf_peer, gathered));
	while ((node = mrf_list_pop(&ep->held)))
		mrf_peer_advance_locked(mrf_list_entry(node, struct mrf_peer, held));
}

/* The application does it, so the agent need not. */
static __attribute__((noinline)) void poll_lines_locked(struct mrf_inbox *lines)
{
	lines->polled = true;
	mrf_arrive_poll_locked(lines);
}

void mrf_peer_poll(struct mrf_source *source)
{
	struct mrf_ep *ep = mrf_container_of(source, struct mrf_ep, source);

	mrf_lock_take(&ep->lock);
	progress_locked(ep);
	if (mrf_unlikely(ep->lines != NULL))
		poll_lines_locked(ep->lines);
	if (mrf_unlikely(ep->begun || !mrf_list_empty(&ep->held)))
		ask_gathered_locked(ep);
	mrf_lock_release(&ep->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's connections: what only the agent thread does. ep->lock is held
 * throughout.
 *
 * A peer with an outstanding answer or reply is probed every second by a write of no
 * bytes. A request that was acknowledged has nothing in flight that could time out, and
 * nothing reports that a machine has gone. No kernel refuses that write, and only the
 * peer's kernel acknowledges it.
 *
 * A peer's process may have been stopped while its kernel goes on. So what is awaited of
 * its agent has a deadline, too (FI_MRFAB_ANSWER_TIMEOUT, from the last answer on). Then
 * what waits fails. (A sync, tx/sync.h, has none: the peer's program may have to read entries first.)
 * Questions stay open, because they may be answered later; a request is
 * given up together with its connection, because its reply would be taken for another's.
 *
 * A rejection of a connection that is up (the target's kernel gave up waiting for our
 * confirmation, or the target accepts and then rejects) is a disconnection, since
 * operations may be in flight.
 */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "ep/link/bulk.h"
#include "ep/link/far.h"
#include "ep/msg/arrive.h"
#include "ep/resolve/ask.h"
#include "ep/tx/delivery.h"
#include "ep/tx/dial.h"
#include "ep/tx/fail.h"
#include "ep/tx/far_op.h"
#include "ep/tx/lift.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/order.h"
#include "ep/tx/outlet.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/peers.h"
#include "ep/tx/rewind.h"
#include "ep/tx/rpc.h"
#include "ep/tx/service.h"

/* --- is the peer still there? ---------------------------------------------------------------- */

/*
 * The peer's agent has not answered for too long: what waits for it fails. Answers may come
 * still; a reply that is given up may not, and ends the connection. READY.
 */
static void unanswered_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	conn->heard = mrf_now_ms();
	mrf_fail_addr_locked(peer, FI_ETIMEDOUT, 4133,
			     "the peer's machine is there, but its process has not answered for "
			     "FI_MRFAB_ANSWER_TIMEOUT milliseconds: was it stopped?");
	mrf_ask_unwant_locked(peer);
	if (!mrf_rpc_awaited_locked(conn) && mrf_far_is_idle(conn))
		return;
	conn->cause = MRF_WC_TIMEOUT;
	mrf_conn_gone_locked(conn);
}

static bool awaits_locked(const struct mrf_conn *conn)
{
	return mrf_rpc_awaited_locked(conn) || conn->peer->known.asks || !mrf_far_is_idle(conn) ||
	       (conn->peer->kind == MRF_CONN_LINE && mrf_outlet_waits_locked(conn->peer));
}

static void send_probe_locked(struct mrf_conn *conn)
{
	struct mrf_vwr wr = { .op = MRF_VWR_WRITE };

	switch (conn->peer->kind) {
	case MRF_CONN_ACCESS:
		mrf_conn_send_locked(conn, &wr);
		return;
	case MRF_CONN_LINE:
		mrf_outlet_probe_locked(conn);
		return;
	case MRF_CONN_KINDS:
		break;
	}
}

/*
 * The deadline of a working connection has passed: while something is awaited, posts a
 * write of no bytes, which no kernel refuses and which only the peer's kernel answers.
 */
static void probe_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	int64_t now;

	conn->probed = awaits_locked(conn);
	if (!conn->probed)
		return;
	mrf_conn_set_deadline_locked(conn, MRF_PROBE_MS);
	mrf_peer_progress_locked(peer->ep);
	now = mrf_now_ms();
	/* A process that does not take messages in, or read entries, is slow, which is no error. */
	if (mrf_list_empty(&peer->queue) || peer->kind == MRF_CONN_LINE ||
	    mrf_rpc_is_patient_locked(conn))
		conn->heard = now;
	/* Nothing was answered for so long although something waits for an answer. */
	if (peer->state == MRF_PEER_READY &&
	    now - conn->heard >= mrf_param_int(MRF_PARAM_ANSWER_TIMEOUT))
		unanswered_locked(conn);
	/* Work requests in flight tell as much: they are acknowledged or not. */
	if (peer->state == MRF_PEER_READY && conn->head == conn->tail && mrf_conn_room_locked(conn))
		send_probe_locked(conn);
	mrf_conn_watch_locked(peer);
}

/* --- what the state asks for ----------------------------------------------------------------- */

static const struct mrf_conn_calls calls;

/*
 * A target may end a line at any time. That counts if messages were lost with it, or if it ends each
 * as soon as it is made.
 */
static bool is_loss(const struct mrf_conn *conn)
{
	const struct mrf_peer *peer = conn->peer;

	return peer->kind != MRF_CONN_LINE || peer->line.posted != conn->line.taken ||
	       mrf_now_ms() - conn->since < MRF_SILENT_MS;
}

static void take_down_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;
	bool denied = mrf_conn_end_denied_locked(conn);

	/* Something was wrong with it, but nothing has put its queue pair into error. */
	if ((peer->kind == MRF_CONN_LINE && conn->cause == MRF_WC_OK) ||
	    (conn->far && conn->far->cause != MRF_WC_OK))
		mrf_conn_gone_locked(conn);
	if (conn->tail != conn->head) {
		/* The connection has a deadline by which to come back. */
		if (peer->state == MRF_PEER_BROKEN) {
			mrf_peer_move_locked(peer, MRF_PEER_DRAIN);
			mrf_conn_set_deadline_locked(conn, MRF_DRAIN_MS);
		}
		mrf_conn_watch_locked(peer);
		return;
	}
	mrf_rpc_lost_locked(conn);
	mrf_bulk_shut_locked(conn);
	mrf_far_shut_locked(conn);
	/* What has completed was done. */
	mrf_peer_progress_locked(peer->ep);
	mrf_offer_lost_locked(conn);
	mrf_far_lost_locked(conn);
	mrf_rewind_queue_locked(peer);
	if (peer->kind == MRF_CONN_LINE) {
		/* The last note may be behind what has come over other lines. */
		mrf_arrive_all_locked(peer->ep->lines);
		mrf_fail_settle_came_locked(peer);
	}
	if (denied)
		mrf_fail_denied_locked(peer);
	peer->dial.losses += is_loss(conn);
	if (peer->dial.losses >= MRF_LOSSES) {
		peer->dial.losses = 0;
		mrf_fail_addr_locked(peer, FI_ECONNRESET, 4131,
				     "the peer accepts the connection, but drops it each time");
	}
	/*
	 * This comes last, because it releases the lock: what is queued then is for the next
	 * connection.
	 */
	mrf_conn_destroy_locked(conn);
}

void mrf_service_conn_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	/* The thread that kicked may have found the endpoint's CQ too full to post. */
	mrf_peer_progress_locked(peer->ep);
	if (mrf_peer_is_broken(peer->state))
		take_down_locked(peer);
	if (peer->state == MRF_PEER_READY && peer->kind == MRF_CONN_LINE)
		mrf_offer_serve_locked(peer);
	if (peer->state == MRF_PEER_READY && peer->kind == MRF_CONN_ACCESS)
		mrf_far_serve_locked(peer);
	if (peer->gone && !mrf_peer_has_work(peer) && mrf_list_empty(&peer->queue) &&
	    mrf_list_empty(&peer->undelivered) && mrf_list_empty(&peer->chores.list) &&
	    !peer->chores.busy && !peer->chores.unprepared && !peer->lifted &&
	    (!peer->conn || (peer->conn->head == peer->conn->tail && mrf_bulk_is_idle(peer->conn) &&
			     mrf_far_is_idle(peer->conn)))) {
		if (peer->conn) {
			mrf_bulk_end_locked(peer->conn);
			mrf_far_end_locked(peer->conn);
			mrf_conn_destroy_locked(peer->conn);
		}
		mrf_lift_free_locked(peer);
		mrf_peers_free_locked(peer);
		return;
	}
	if (peer->state == MRF_PEER_IDLE && mrf_peer_has_work(peer)) {
		mrf_dial_locked(peer, &calls);
	} else {
		/* The operations that the peer was dialled for may have been canceled. */
		if (peer->state == MRF_PEER_IDLE)
			mrf_dial_forget_locked(peer);
		mrf_peer_advance_locked(peer);
	}
	/* mrf_conn_probe_locked may have marked the connection. */
	if (peer->state == MRF_PEER_READY && peer->conn->probed &&
	    !mrf_timer_runs(&peer->conn->timer))
		mrf_conn_set_deadline_locked(peer->conn, MRF_PROBE_MS);
}

void mrf_service_kicked(struct mrf_kick *kick)
{
	struct mrf_peer *peer = mrf_container_of(kick, struct mrf_peer, kick);
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	mrf_service_conn_locked(peer);
	mrf_service_leave(ep);
}

/* --- the deadline is over -------------------------------------------------------------------- */

static void expired_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_timer_stop(peer->ep->agent, &conn->timer);
	if (mrf_peer_is_broken(peer->state)) {
		/* The completions may be there, not yet polled. */
		mrf_peer_progress_locked(peer->ep);
		if (conn->head == conn->tail || peer->state == MRF_PEER_BROKEN)
			return;
		mrf_warn(FI_LOG_EP_DATA, 4030, "the device never completed %u work request%s",
			 conn->tail - conn->head, MRF_S(conn->tail - conn->head));
		/* These operations may have run, or not. */
		mrf_peer_give_up_locked(conn);
	} else if (peer->state == MRF_PEER_READY) {
		probe_locked(conn);
	} else if (mrf_dial_expired_locked(conn)) {
		mrf_service_conn_locked(peer);
	}
}

static void deadline(struct mrf_timer *timer)
{
	struct mrf_conn *conn = mrf_container_of(timer, struct mrf_conn, timer);
	struct mrf_ep *ep = conn->peer->ep;

	mrf_lock_take(&ep->lock);
	expired_locked(conn);
	mrf_service_leave(ep);
}

/* Sends what was gathered, and releases the leases if nothing uses them. */
static void leased(struct mrf_timer *timer)
{
	struct mrf_conn *conn = mrf_container_of(timer, struct mrf_conn, lease_timer);
	struct mrf_peer *peer = conn->peer;
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	mrf_timer_stop(ep->agent, timer);
	conn->soon = false;
	peer->known.lately = false;
	mrf_peer_progress_locked(ep);
	mrf_peer_advance_locked(peer);
	mrf_service_leave(ep);
}

/* --- what comes ----------------------------------------------------------------------------- */

static void take_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!mrf_peer_hears(peer->state, event->type))
		return;
	if (!mrf_peer_dials(peer->state))
		mrf_conn_gone_locked(conn);
	else if (mrf_dial_event_locked(conn, event))
		mrf_dial_locked(peer, &calls);
}

/* False: the message is none that is expected here. */
static bool take_message_locked(struct mrf_peer *peer, const uint8_t *msg, size_t len)
{
	struct mrf_answer answer;
	struct mrf_forget forget;

	switch (mrf_msg_type(msg, len)) {
	case MRF_MSG_FORGET:
		if (mrf_forget_decode(msg, len, &forget))
			return false;
		mrf_remote_gone_locked(peer, &forget);
		return true;
	case MRF_MSG_REPLY:
		peer->conn->heard = mrf_now_ms();
		/* The operations ahead of the request are done, and complete first. */
		mrf_peer_progress_locked(peer->ep);
		if (mrf_rpc_replied_locked(peer, msg, len))
			return false;
		mrf_peer_advance_locked(peer);
		return true;
	default:
		if (mrf_answer_decode(msg, len, &answer))
			return false;
		peer->conn->heard = mrf_now_ms();
		if (mrf_ask_answered_locked(peer, &answer))
			mrf_peer_advance_locked(peer);
		return true;
	}
}

static void hang_up_locked(struct mrf_conn *conn)
{
	if (mrf_peer_dials(conn->peer->state))
		mrf_dial_lost_locked(conn);
	else
		mrf_conn_gone_locked(conn);
}

static void take_completion_locked(struct mrf_conn *conn, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = conn->peer;
	uint8_t msg[MRF_CONN_SLOT_SIZE];

	mrf_lock_held(&conn->peer->ep->lock);
	/*
	 * A flush tells, without anybody polling, that the queue pair broke: take in what broke
	 * it. While connecting it is librdmacm that breaks it, and an event tells why.
	 */
	if (wc->status != MRF_WC_OK) {
		if (mrf_peer_dials(peer->state))
			return;
		mrf_peer_progress_locked(peer->ep);
		mrf_conn_break_locked(peer);
		return;
	}
	if (slot >= MRF_CONN_SLOTS)
		return;
	/* The message is copied, because handling it may need the slot. */
	memcpy(msg, conn->slots + slot * MRF_CONN_SLOT_SIZE, wc->byte_len);
	if (mrf_conn_post_slot(conn, slot)) {
		mrf_info(FI_LOG_EP_DATA, "nothing more can be received from a peer: its connection "
					 "is closed");
		hang_up_locked(conn);
	} else if (!take_message_locked(peer, msg, wc->byte_len)) {
		mrf_warn(FI_LOG_EP_DATA, 4021,
			 "a peer sent a malformed message of %u byte%s: its connection is closed",
			 wc->byte_len, MRF_S(wc->byte_len));
		hang_up_locked(conn);
	}
}

/* --- what the agent tells -------------------------------------------------------------------- */

static struct mrf_conn *conn_of(struct mrf_owner *owner)
{
	return mrf_container_of(owner, struct mrf_conn, owner);
}

static void event(struct mrf_owner *owner, const struct mrf_cm_event *event)
{
	struct mrf_ep *ep = conn_of(owner)->peer->ep;

	mrf_lock_take(&ep->lock);
	take_event_locked(conn_of(owner), event);
	mrf_service_leave(ep);
}

static void message(struct mrf_owner *owner, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_ep *ep = conn_of(owner)->peer->ep;

	mrf_lock_take(&ep->lock);
	take_completion_locked(conn_of(owner), slot, wc);
	mrf_service_leave(ep);
}

/* As if the peer had gone: operations in flight come back, or are given up after a time. */
static void broke(struct mrf_owner *owner)
{
	struct mrf_conn *conn = conn_of(owner);
	struct mrf_ep *ep = conn->peer->ep;

	mrf_lock_take(&ep->lock);
	if (conn->peer->state == MRF_PEER_READY)
		mrf_conn_gone_locked(conn);
	mrf_service_leave(ep);
}

static bool going(struct mrf_owner *owner)
{
	struct mrf_conn *conn = conn_of(owner);
	struct mrf_ep *ep = conn->peer->ep;
	enum mrf_peer_state state;

	mrf_lock_take(&ep->lock);
	state = conn->peer->state;
	mrf_chores_unlock(ep);
	return state == MRF_PEER_READY || mrf_peer_dials(state);
}

static void end(struct mrf_owner *owner)
{
	struct mrf_conn *conn = conn_of(owner);
	struct mrf_peer *peer = conn->peer;
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	if (peer->state == MRF_PEER_READY) {
		mrf_conn_denied_locked(conn);
	} else {
		mrf_rewind_queue_locked(peer);
		mrf_dial_forget_locked(peer);
		mrf_fail_denied_locked(peer);
		mrf_conn_destroy_locked(conn);
	}
	mrf_service_leave(ep);
}

static const struct mrf_conn_calls calls = {
	.owner = { .event = event, .message = message, .broke = broke, .going = going, .end = end },
	.deadline = deadline,
	.leased = leased,
};

/* --- the endpoint closes --------------------------------------------------------------------- */

static void collect_ring_locked(struct mrf_peer *peer, struct mrf_conn *conn)
{
	for (; conn->head != conn->tail; conn->head++) {
		struct mrf_op *op = conn->ring[conn->head % MRF_CONN_RING].op;

		peer->ep->scq_used--;
		if (op && !--op->inflight && !op->queued && !op->chore)
			mrf_list_add_tail(&op->node, &peer->redo);
	}
}

static struct mrf_op *next_op_locked(struct mrf_peer *peer)
{
	struct mrf_op *halted = peer->chores.unprepared;
	struct mrf_list *node;

	peer->chores.unprepared = NULL;
	if (halted && !halted->queued)
		return halted;
	node = mrf_list_pop(&peer->chores.list);
	if (!node)
		node = mrf_list_pop(&peer->redo);
	if (!node)
		node = mrf_list_pop(&peer->queue);
	return node ? mrf_list_entry(node, struct mrf_op, node) : NULL;
}

bool mrf_service_abandon_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;
	struct mrf_op *op;

	mrf_lock_held(&ep->lock);
	if (peer->chores.busy || !mrf_lift_abandon_locked(peer))
		return false;
	mrf_delivery_abandon_locked(peer);
	mrf_offer_abandon_locked(peer);
	mrf_far_abandon_locked(peer);
	if (peer->conn) {
		collect_ring_locked(peer, peer->conn);
		mrf_bulk_end_locked(peer->conn);
		mrf_far_end_locked(peer->conn);
		/* The device must have let go of the buffers before they are given back. */
		mrf_conn_destroy_locked(peer->conn);
	}
	/* Nobody else works on the endpoint any more. */
	while ((op = next_op_locked(peer))) {
		op->out = 0; /* what was out went with the connection */
		mrf_order_part_locked(op);
		mrf_lock_release(&ep->lock);
		mrf_chores_free(ep, op);
		mrf_lock_take(&ep->lock);
	}
	mrf_lift_free_locked(peer);
	mrf_peers_free_locked(peer);
	return true;
}

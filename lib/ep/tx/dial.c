/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a connection to a peer: from nothing, or state IDLE, to READY. Agent thread,
 * ep->lock held, but not over the calls of rdma_cm (conn.h).
 *
 * The kernel looks for the peer's address for MRF_RESOLVE_MS at a time, again and again
 * until FI_MRFAB_CONN_TIMEOUT: an answer that arrives before the kernel waits for one is
 * found only by a new search.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "ep/link/conn.h"
#include "ep/link/greet.h"
#include "ep/resolve/ask.h"
#include "ep/tx/dial.h"
#include "ep/tx/doubt.h"
#include "ep/tx/fail.h"
#include "ep/tx/peer.h"
#include "ep/tx/turns.h"
#include "loop/denied.h"

void mrf_dial_forget_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	peer->dial.tries = peer->dial.challenges = peer->dial.unanswered = peer->dial.turned_away =
		0;
	peer->dial.until = 0;
	mrf_turn_end(peer);
}

/* The connection could not be made: whatever waits for it fails. */
static void give_up_why_locked(struct mrf_peer *peer, const struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_peer_rewind_locked(peer);
	mrf_dial_forget_locked(peer);
	mrf_fail_addr_locked(peer, why->err, why->code, why->text);
	/* Last, because it leaves the lock: what is queued then is for the next connection. */
	mrf_conn_destroy_locked(peer->conn);
}

static void give_up_addr_locked(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	/* The error may be about this address, or about everything that this process asks for. */
	peer->ep->agent->suspect |= err == FI_EACCES;
	mrf_why_set(&why, err, code, "%s", text);
	give_up_why_locked(peer, &why);
}

static void give_up_full_locked(struct mrf_peer *peer)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	mrf_greet_no_room_locked(peer, &why);
	give_up_why_locked(peer, &why);
}

/* --- making -------------------------------------------------------------------------------- */

static int timeout_ms(void)
{
	return (int)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

static void trace(const struct mrf_peer *peer, const char *what)
{
	char text[64];

	mrf_info(FI_LOG_EP_CTRL, "peer %s: %s", mrf_addr_text(&peer->addr, text, sizeof(text)),
		 what);
}

static void resolve_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_resolve(conn->vconn, &peer->ep->domain->addr.sa, &peer->addr.sa,
				mrf_min(timeout_ms(), MRF_RESOLVE_MS),
				(unsigned)mrf_param_int(MRF_PARAM_ACK_TIMEOUT));
	mrf_conn_lock(conn);
	if (ret)
		give_up_addr_locked(peer, -ret, 4121,
				    "there is no route from the domain's address: is its "
				    "interface up, and is the peer in a network that it reaches "
				    "(ip route get)?");
}

/* The device was removed: what waits for the peer fails because of that. */
static void device_gone_locked(struct mrf_peer *peer)
{
	char text[MRF_ERR_TEXT];

	mrf_lock_held(&peer->ep->lock);
	snprintf(text, sizeof(text),
		 "the device %s was removed after the domain had been opened: the domain has to "
		 "be closed and opened again",
		 mrf_vdev_name(peer->ep->domain->vdev));
	mrf_fail_peer_locked(peer, FI_ENODEV, 4132, text);
}

void mrf_dial_locked(struct mrf_peer *peer, const struct mrf_conn_calls *calls)
{
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(peer->ep->agent->gone)) {
		mrf_dial_forget_locked(peer);
		device_gone_locked(peer);
		return;
	}
	if (!peer->dial.until && !mrf_turn_take(peer))
		return;
	ret = peer->ep->agent->denied ? -FI_EACCES : mrf_conn_new_locked(peer, calls, &peer->conn);
	if (ret)
		mrf_dial_forget_locked(peer);
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_fail_denied_locked(peer);
		return;
	}
	if (ret) {
		mrf_fail_peer_locked(peer, -ret, 4120,
				     "there are no resources for another connection");
		return;
	}
	mrf_peer_move_locked(peer, MRF_PEER_DIAL);
	if (!peer->dial.until)
		peer->dial.until = mrf_now_ms() + timeout_ms();
	trace(peer, "connecting");
	mrf_conn_set_deadline_locked(peer->conn, peer->dial.until - mrf_now_ms());
	resolve_locked(peer);
}

/* Without ep->lock. */
static int create_conn_qp(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	struct mrf_vqp_attr attr = { .pd = ep->domain->pd,
				     .send_cq = ep->scq,
				     .recv_cq = conn->owner.cq->vcq,
				     .send_depth = MRF_CONN_RING - 1,
				     .recv_depth = MRF_CONN_SLOTS,
				     .send_sge = MRF_LOCAL_SGE,
				     .max_inline = MRF_LIMIT_INJECT };
	unsigned i;
	int ret = mrf_vconn_create_qp(conn->vconn, &attr);

	for (i = 0; !ret && i < MRF_CONN_SLOTS; i++)
		ret = mrf_conn_post_slot(conn, i);
	return ret;
}

static void on_addr_locked(struct mrf_conn *conn)
{
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_peer_move_locked(conn->peer, MRF_PEER_FOUND);
	mrf_conn_unlock(conn);
	ret = create_conn_qp(conn);
	if (!ret)
		ret = mrf_vconn_route(conn->vconn, timeout_ms());
	mrf_conn_lock(conn);
	if (ret)
		give_up_addr_locked(conn->peer, -ret, 4122,
				    "no queue pair can be made, or there is no route");
}

/* Sets how long this attempt may take; the last attempt gets all the time that is left. */
static void await_answer_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	int64_t left = peer->dial.until - mrf_now_ms();
	int64_t ms = (int64_t)MRF_DIAL_MS << mrf_min(peer->dial.unanswered, 16u);

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_peer_move_locked(peer, MRF_PEER_ASK);
	/* A little more would only be cut off. */
	conn->last = left < ms + MRF_RETRY_MS;
	mrf_conn_set_deadline_locked(conn, conn->last ? left : ms);
}

static void on_route_locked(struct mrf_conn *conn)
{
	struct mrf_hello hello = { .ticket = conn->peer->target.ticket,
				   .lost = conn->peer->target.lost };
	uint8_t data[MRF_PROTO_HELLO_MAX];
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_greet_hello_locked(conn, &hello);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_connect(conn->vconn, data, mrf_hello_encode(&hello, data),
				(unsigned)mrf_param_int(MRF_PARAM_RETRY));
	mrf_conn_lock(conn);
	if (ret)
		give_up_addr_locked(conn->peer, -ret, 4123,
				    "the connection request was not accepted");
	else
		await_answer_locked(conn);
}

/* Before anything is posted on it; without ep->lock. */
static void begin_counting(struct mrf_conn *conn)
{
	uint32_t mtu;

	mrf_vdev_retries(conn->peer->ep->domain->vdev, &conn->retries);
	/* Messages are counted as one packet each. */
	if (!mrf_vconn_psn(conn->vconn, &conn->psn, &mtu) && mtu >= MRF_PROTO_MAX_REQUEST)
		conn->mtu = mtu;
}

static void on_response_locked(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	uint64_t before = peer->target.instance;
	struct mrf_why why;
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!mrf_greet_welcomed_locked(conn, event, &why)) {
		give_up_why_locked(peer, &why);
		return;
	}
	/* Another endpoint behind the same address knows nothing of what the old one said. */
	if (peer->target.instance != before) {
		mrf_remote_forget_all_locked(peer);
		mrf_ask_unwant_locked(peer);
	}
	mrf_remote_forget_staged_locked(peer);
	mrf_doubt_settle_locked(conn);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_establish(conn->vconn);
	if (!ret)
		begin_counting(conn);
	mrf_conn_lock(conn);
	if (ret == -FI_ECONNRESET) {
		give_up_addr_locked(peer, FI_ECONNRESET, 4127,
				    "the peer went away while the connection was being made");
		return;
	}
	if (ret) {
		give_up_addr_locked(peer, -ret, 4201, "the connection cannot be completed");
		return;
	}
	mrf_timer_stop(peer->ep->agent, &conn->timer);
	peer->dial.tries = peer->dial.unanswered = peer->dial.turned_away = 0;
	peer->dial.until = 0;
	mrf_turn_end(peer);
	mrf_peer_move_locked(peer, MRF_PEER_UP);
	trace(peer, "connected");
	mrf_peer_advance_locked(peer);
}

/* The id can no longer be used; wait with a new one that does nothing yet. */
static void wait_and_dial_locked(struct mrf_conn *conn, int64_t ms)
{
	mrf_lock_held(&conn->peer->ep->lock);
	trace(conn->peer, "the peer is not ready yet: connecting again later");
	mrf_peer_move_locked(conn->peer, MRF_PEER_PAUSE);
	mrf_conn_set_deadline_locked(conn, ms);
}

/* Most often there is room in a moment. */
static int64_t until_there_is_room_locked(const struct mrf_peer *peer)
{
	unsigned n = peer->dial.turned_away - 1;

	mrf_lock_held(&peer->ep->lock);
	return mrf_min((int64_t)MRF_RETRY_FIRST_MS << mrf_min(n, 8u), MRF_RETRY_MS);
}

/* True: dial again at once, with a proof. */
static bool on_refused_locked(struct mrf_peer *peer, uint32_t reason,
			      const struct mrf_cm_event *event)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	if (reason == MRF_REFUSE_RESOURCES) {
		/* It has taken the proof. The next attempt is another connection. */
		peer->dial.challenges = 0;
		peer->dial.turned_away++;
		peer->dial.full = mrf_full_decode(event->data, event->len);
	}
	/* At the quota of its host the peer keeps its turn: requests of others would meet it, too. */
	if (reason == MRF_REFUSE_RESOURCES && peer->dial.full != MRF_FULL_HALF)
		mrf_turn_end(peer);
	/* Others may be let down soon. */
	if (reason == MRF_REFUSE_RESOURCES && mrf_now_ms() + MRF_RETRY_MS < peer->dial.until) {
		wait_and_dial_locked(peer->conn, until_there_is_room_locked(peer));
		return false;
	}
	if (!mrf_greet_again_locked(peer, event->data, event->len, &why)) {
		give_up_why_locked(peer, &why);
		return false;
	}
	mrf_conn_destroy_locked(peer->conn);
	return true;
}

/* Likewise. */
static bool on_rejected_locked(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	uint32_t reason;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!mrf_refuse_decode(event->data, event->len, &reason))
		return on_refused_locked(peer, reason, event);
	if (++peer->dial.tries >= MRF_REFUSALS) {
		give_up_addr_locked(peer, FI_ECONNREFUSED, 4126,
				    "no endpoint listens at this address");
		return false;
	}
	mrf_turn_end(peer);
	wait_and_dial_locked(conn, MRF_RETRY_MS);
	return false;
}

static void on_failed_locked(struct mrf_peer *peer, int err)
{
	mrf_lock_held(&peer->ep->lock);
	if (err == FI_EACCES)
		give_up_addr_locked(peer, err, 5204, MRF_DENIED_TEXT);
	else if (err == FI_ETIMEDOUT)
		give_up_addr_locked(peer, err, 4128, "no answer to the connection request");
	else
		give_up_addr_locked(peer, err, 4128,
				    "the address cannot be reached over this device");
}

bool mrf_dial_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	switch (event->type) {
	case MRF_CM_ADDR_RESOLVED:
		on_addr_locked(conn);
		break;
	case MRF_CM_UNRESOLVED:
		mrf_turn_end(peer);
		resolve_locked(peer);
		break;
	case MRF_CM_ROUTE_RESOLVED:
		on_route_locked(conn);
		break;
	case MRF_CM_RESPONSE:
		mrf_turn_heard(peer);
		on_response_locked(conn, event);
		break;
	case MRF_CM_REJECTED:
		mrf_turn_heard(peer);
		return on_rejected_locked(conn, event);
	case MRF_CM_FAILED:
		on_failed_locked(peer, event->err);
		break;
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		mrf_dial_lost_locked(conn);
		break;
	default:
		break;
	}
	return false;
}

void mrf_dial_lost_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	give_up_addr_locked(conn->peer, FI_ECONNRESET, 4127,
			    "the peer went away while the connection was being made");
}

/* There was no answer, perhaps because it or the request got lost. */
static bool may_dial_again_locked(const struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return conn->peer->state != MRF_PEER_LOOKING && !conn->last &&
	       mrf_now_ms() < conn->peer->dial.until;
}

bool mrf_dial_expired_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	bool paused = peer->state == MRF_PEER_PAUSED;

	mrf_lock_held(&conn->peer->ep->lock);
	if (paused || may_dial_again_locked(conn)) {
		peer->dial.unanswered += !paused;
		if (!paused)
			mrf_turn_end(peer);
		mrf_conn_destroy_locked(conn);
		return true;
	}
	/* The peer's refusal counts, not that there was no time for another attempt. */
	if (peer->dial.turned_away)
		give_up_full_locked(peer);
	else if (peer->state == MRF_PEER_LOOKING)
		give_up_addr_locked(peer, FI_ETIMEDOUT, 4128,
				    "no machine answers for that address");
	else
		give_up_addr_locked(peer, FI_ETIMEDOUT, 4129,
				    "there is no answer to the connection request: does a "
				    "process with an enabled endpoint run there, and does its "
				    "rxe device work (rdma link)?");
	return false;
}

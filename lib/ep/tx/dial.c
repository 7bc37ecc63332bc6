/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Policy: when there is another attempt to connect to a peer, how long each may take, and what
 * happens to what waits for the connection. What an attempt is: link/conn.h.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/log.h"
#include "ep/link/greet.h"
#include "ep/resolve/ask.h"
#include "ep/tx/dial.h"
#include "ep/tx/fail.h"
#include "ep/tx/idle.h"
#include "ep/tx/offer_ask.h"
#include "ep/tx/outlet.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/permits.h"
#include "ep/tx/rewind.h"

void mrf_dial_forget_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	peer->dial.tries = peer->dial.challenges = peer->dial.unanswered = peer->dial.turned_away =
		0;
	peer->dial.until = 0;
	mrf_permit_end(peer);
}

/* The connection could not be made: whatever waits for it fails. */
static void give_up_why_locked(struct mrf_peer *peer, const struct mrf_why *why)
{
	mrf_rewind_queue_locked(peer);
	mrf_dial_forget_locked(peer);
	mrf_fail_addr_locked(peer, why->err, why->code, why->text);
	/*
	 * This comes last, because it releases the lock: what is queued then is for the next
	 * connection.
	 */
	mrf_conn_destroy_locked(peer->conn);
}

static void give_up_locked(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_why why;

	mrf_why_set(&why, err, code, "%s", text);
	give_up_why_locked(peer, &why);
}

/* --- making -------------------------------------------------------------------------------- */

static void trace(const struct mrf_peer *peer, const char *what)
{
	char text[64];

	mrf_info(FI_LOG_EP_CTRL, "peer %s: %s", mrf_addr_text(&peer->addr, text, sizeof(text)),
		 what);
}

static void look_locked(struct mrf_peer *peer)
{
	struct mrf_why why;

	if (mrf_conn_resolve_locked(peer->conn, &why) == MRF_ATTEMPT_FAILED)
		give_up_why_locked(peer, &why);
}

/* The device was removed: what waits for the peer fails because of that. */
static void device_gone_locked(struct mrf_peer *peer)
{
	char text[MRF_ERR_TEXT];

	snprintf(text, sizeof(text),
		 "the device %s was removed after the domain had been opened: end the process and "
		 "start it again, because librdmacm keeps the device as long as it lives",
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
	if (!peer->dial.until && !mrf_permit_take(peer))
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
		peer->dial.until = mrf_now_ms() + mrf_conn_timeout();
	trace(peer, "connecting");
	mrf_conn_set_deadline_locked(peer->conn, peer->dial.until - mrf_now_ms());
	look_locked(peer);
}

/* Sets how long this attempt may take; the last attempt gets all the time that is left. */
static void await_answer_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	int64_t left = peer->dial.until - mrf_now_ms();
	int64_t ms = (int64_t)MRF_DIAL_MS << mrf_min(peer->dial.unanswered, 16u);

	/* A longer time would only be cut off. */
	conn->last = left < ms + MRF_RETRY_MS;
	mrf_conn_set_deadline_locked(conn, conn->last ? left : ms);
}

/* The id can no longer be used; wait with a new one that does nothing yet. */
static void wait_and_dial_locked(struct mrf_conn *conn, int64_t ms)
{
	trace(conn->peer, "the peer is not ready yet: connecting again later");
	mrf_peer_move_locked(conn->peer, MRF_PEER_PAUSE);
	mrf_conn_set_deadline_locked(conn, ms);
}

/*
 * The peer has accepted it and dropped it before this process could confirm it, most likely for
 * another one (MRF_HALF_GRACE_MS): there may be room for this one later.
 */
static void on_lost_locked(struct mrf_peer *peer, const struct mrf_why *why)
{
	if (peer->state != MRF_PEER_ASKING || mrf_now_ms() + MRF_RETRY_MS >= peer->dial.until) {
		give_up_why_locked(peer, why);
		return;
	}
	mrf_permit_end(peer);
	wait_and_dial_locked(peer->conn, MRF_RETRY_MS);
}

static void not_established_locked(struct mrf_peer *peer, enum mrf_attempt attempt,
				   const struct mrf_why *why)
{
	if (attempt == MRF_ATTEMPT_LOST)
		on_lost_locked(peer, why);
	else
		give_up_why_locked(peer, why);
}

/* before: the instance of the endpoint that the last connection led to. */
static void on_welcome_locked(struct mrf_conn *conn, uint64_t before)
{
	struct mrf_peer *peer = conn->peer;
	enum mrf_attempt attempt;
	struct mrf_why why;

	/* Another endpoint at the same address knows nothing of what the old one said. */
	mrf_remote_forget_locked(peer, peer->target.instance != before);
	if (peer->target.instance != before)
		mrf_ask_unwant_locked(peer);
	mrf_fail_settle_locked(conn);
	if (peer->kind == MRF_CONN_LINE) {
		mrf_outlet_begins_locked(peer, &conn->line);
		mrf_idle_begins_locked(peer);
		mrf_offer_begins_locked(peer, conn->told);
	}
	attempt = mrf_conn_establish_locked(conn, &why);
	if (attempt != MRF_ATTEMPT_GOES_ON) {
		not_established_locked(peer, attempt, &why);
		return;
	}
	/* From now on the peer is not dialled. */
	mrf_dial_forget_locked(peer);
	trace(peer, "connected");
	mrf_peer_advance_locked(peer);
}

/*
 * The peer has accepted the proof but has no room, so the next attempt is another connection. True:
 * there is time for one later.
 */
static bool on_full_locked(struct mrf_peer *peer, const struct mrf_cm_event *event)
{
	unsigned before = peer->dial.turned_away++;

	peer->dial.challenges = 0;
	peer->dial.full = mrf_full_decode(event->data, event->len);
	/*
	 * A peer that met the quota of its host keeps its permit: requests of others would meet the
	 * quota, too.
	 */
	if (peer->dial.full != MRF_FULL_HALF)
		mrf_permit_end(peer);
	/* The target may soon free a place. */
	if (mrf_now_ms() + MRF_RETRY_MS >= peer->dial.until)
		return false;
	/* In most cases there will be room in a moment. */
	wait_and_dial_locked(peer->conn, mrf_min((int64_t)MRF_RETRY_FIRST_MS << mrf_min(before, 8u),
						 MRF_RETRY_MS));
	return true;
}

/* True: dial again at once, with a proof. */
static bool on_refused_locked(struct mrf_peer *peer, const struct mrf_cm_event *event)
{
	struct mrf_why why;
	uint32_t reason;

	if (!mrf_refuse_decode(event->data, event->len, &reason) &&
	    reason == MRF_REFUSE_RESOURCES && on_full_locked(peer, event))
		return false;
	if (!mrf_greet_again_locked(peer, event->data, event->len, &why)) {
		give_up_why_locked(peer, &why);
		return false;
	}
	mrf_conn_destroy_locked(peer->conn);
	return true;
}

static void on_nobody_locked(struct mrf_peer *peer)
{
	if (++peer->dial.tries >= MRF_REFUSALS) {
		give_up_locked(peer, FI_ECONNREFUSED, 4126, "no endpoint listens at this address");
		return;
	}
	mrf_permit_end(peer);
	wait_and_dial_locked(peer->conn, MRF_RETRY_MS);
}

bool mrf_dial_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	uint64_t before = peer->target.instance;
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	/* The answer came from the peer's host. */
	if (event->type == MRF_CM_RESPONSE || event->type == MRF_CM_REJECTED)
		mrf_permit_heard(peer);
	switch (mrf_conn_event_locked(conn, event, &why)) {
	case MRF_ATTEMPT_GOES_ON:
		break;
	case MRF_ATTEMPT_NOT_FOUND:
		mrf_permit_end(peer);
		look_locked(peer);
		break;
	case MRF_ATTEMPT_ASKED:
		await_answer_locked(conn);
		break;
	case MRF_ATTEMPT_WELCOMED:
		on_welcome_locked(conn, before);
		break;
	case MRF_ATTEMPT_REFUSED:
		return on_refused_locked(peer, event);
	case MRF_ATTEMPT_NOBODY:
		on_nobody_locked(peer);
		break;
	case MRF_ATTEMPT_LOST:
		on_lost_locked(peer, &why);
		break;
	case MRF_ATTEMPT_FAILED:
		give_up_why_locked(peer, &why);
	}
	return false;
}

void mrf_dial_lost_locked(struct mrf_conn *conn)
{
	struct mrf_why why;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_conn_lost_locked(conn->peer, &why);
	give_up_why_locked(conn->peer, &why);
}

bool mrf_dial_expired_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	bool paused = peer->state == MRF_PEER_PAUSED;
	struct mrf_why why;

	mrf_lock_held(&conn->peer->ep->lock);
	/* There was no answer, perhaps because it or the request got lost. */
	if (paused ||
	    (peer->state != MRF_PEER_LOOKING && !conn->last && mrf_now_ms() < peer->dial.until)) {
		peer->dial.unanswered += !paused;
		if (!paused)
			mrf_permit_end(peer);
		mrf_conn_destroy_locked(conn);
		return true;
	}
	/*
	 * What is reported is the peer's refusal, and not that there was no time for another
	 * attempt.
	 */
	if (peer->dial.turned_away) {
		mrf_greet_no_room_locked(peer, &why);
		give_up_why_locked(peer, &why);
	} else if (peer->state == MRF_PEER_LOOKING) {
		give_up_locked(peer, FI_ETIMEDOUT, 4128, "no machine answers for that address");
	} else {
		give_up_locked(peer, FI_ETIMEDOUT, 4129,
			       "there is no answer to the connection request: does a "
			       "process with an enabled endpoint run there, and does its "
			       "rxe device work (rdma link)? Two devices of one host do not "
			       "reach each other");
	}
	return false;
}

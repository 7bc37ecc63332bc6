/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's connections: what only the agent thread does. ep->lock is held throughout. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "ep/budget.h"
#include "ep/denied.h"
#include "ep/device.h"
#include "ep/greet.h"
#include "ep/rpc.h"
#include "ep/peer_int.h"

void mrf_conn_set_deadline(struct mrf_conn *conn, int64_t ms)
{
	mrf_timer_set(conn->peer->ep->agent, &conn->timer, ms);
}

/* What is in flight has to come back now. */
static void drain(struct mrf_conn *conn)
{
	conn->draining = true;
	mrf_conn_set_deadline(conn, MRF_DRAIN_MS);
}

static void clear_deadline(struct mrf_conn *conn)
{
	mrf_timer_stop(&conn->timer);
}

/* --- taking down --------------------------------------------------------------------------- */

void mrf_conn_destroy(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_ep *ep = peer->ep;

	clear_deadline(conn);
	if (conn->vconn) {
		mrf_vconn_disconnect(conn->vconn);
		mrf_vconn_close(conn->vconn);
	}
	ep->scq_used -= conn->tail - conn->head;
	mrf_idmap_remove(&ep->conns, conn->owner.id);
	if (ep->last == conn)
		ep->last = NULL;
	mrf_agent_disown(ep->agent, &conn->owner, MRF_CONN_SLOTS);
	mrf_vmr_drop(&conn->slots_mr);
	free(conn->slots);
	free(conn);
	peer->conn = NULL;
	peer->state = MRF_PEER_IDLE;
}

void mrf_peer_fail_addr(struct mrf_peer *peer, int err, int code, const char *why)
{
	char addr[64], text[MRF_ERR_TEXT];

	snprintf(text, sizeof(text), "%.*s: %.*s", (int)sizeof(addr),
		 mrf_addr_text(&peer->addr, addr, sizeof(addr)),
		 (int)(sizeof(text) - sizeof(addr) - 3), why);
	mrf_peer_fail(peer, err, code, text);
}

int mrf_conn_post_slot(struct mrf_conn *conn, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)(conn->slots + slot * MRF_CONN_SLOT_SIZE),
			       .len = MRF_CONN_SLOT_SIZE,
			       .lkey = conn->slots_mr.lkey };

	return mrf_vconn_post_recv(conn->vconn, MRF_WR_ID(conn->owner.id, slot), &sge);
}

/* --- loss -------------------------------------------------------------------------------- */

static void on_gone(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	if (conn->disconnected)
		return;
	conn->lost = true;
	conn->disconnected = true;
	mrf_peer_break(peer);
	drain(conn);
	mrf_vconn_disconnect(conn->vconn);
}

void mrf_conn_unanswered(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	conn->heard = mrf_now_ms();
	mrf_peer_fail_addr(peer, FI_ETIMEDOUT, 4133,
			   "its machine is there, but its process has not answered for "
			   "FI_MRFAB_ANSWER_TIMEOUT milliseconds: was it stopped?");
	mrf_ask_unwant(peer);
	if (!mrf_rpc_awaited(conn))
		return;
	conn->cause = MRF_WC_TIMEOUT;
	on_gone(conn);
}

void mrf_conn_event(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	if (conn->peer->state == MRF_PEER_CONNECTING) {
		mrf_dial_event(conn, event);
		return;
	}
	switch (event->type) {
	case MRF_CM_REJECTED: /* after it had let us in: then something is in flight */
	case MRF_CM_FAILED:
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		on_gone(conn);
		break;
	default:
		break;
	}
}

/* --- service ------------------------------------------------------------------------------- */

static void take_down(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;
	bool denied = mrf_conn_end_denied(conn);

	if (conn->tail != conn->head) {
		if (!conn->draining)
			drain(conn);
		mrf_agent_watch(peer);
		return;
	}
	mrf_rpc_lost(conn);
	mrf_conn_destroy(conn);
	mrf_peer_rewind(peer);
	if (denied)
		mrf_peer_denied(peer);
	if (++peer->losses < MRF_LOSSES)
		return;
	peer->losses = 0;
	mrf_peer_fail_addr(peer, FI_ECONNRESET, 4131, "connects, but drops the connection each time");
}

void mrf_conn_service(struct mrf_peer *peer)
{
	/* Whoever kicked may have found the endpoint's CQ too full to post. */
	mrf_ep_progress(peer->ep);
	if (peer->state == MRF_PEER_BROKEN)
		take_down(peer);
	if (peer->gone && mrf_list_empty(&peer->queue) &&
	    (!peer->conn || peer->conn->head == peer->conn->tail)) {
		if (peer->conn)
			mrf_conn_destroy(peer->conn);
		mrf_peer_free(peer);
		return;
	}
	if (peer->state == MRF_PEER_IDLE && !mrf_list_empty(&peer->queue))
		mrf_conn_dial(peer);
	else
		mrf_peer_advance(peer);
	mrf_probe_begin(peer);
}

/* What the device never gave back: nobody knows whether it ran. */
static void force_drain(struct mrf_conn *conn)
{
	struct mrf_wc wc = { .wr_id = conn->owner.id, .status = MRF_WC_TIMEOUT };

	mrf_warn(FI_LOG_EP_DATA, 4030, "%u work requests were never completed by the device",
		 conn->tail - conn->head);
	while (conn->head != conn->tail)
		mrf_peer_completed(conn, &wc);
}

static void expired(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	clear_deadline(conn);
	if (peer->state == MRF_PEER_BROKEN) {
		/* They may only have lain there, if nobody looked. */
		mrf_ep_progress(peer->ep);
		if (conn->head != conn->tail && conn->draining)
			force_drain(conn);
	} else if (peer->state == MRF_PEER_READY) {
		mrf_probe(conn);
	} else {
		mrf_dial_expired(conn);
	}
}

void mrf_conn_deadline(struct mrf_timer *timer)
{
	struct mrf_conn *conn = mrf_container_of(timer, struct mrf_conn, timer);
	struct mrf_ep *ep = conn->peer->ep;

	mrf_lock_take(&ep->lock);
	expired(conn);
	mrf_lock_release(&ep->lock);
}

/* False: it is none that belongs here. */
static bool take_message(struct mrf_peer *peer, const uint8_t *msg, size_t len)
{
	struct mrf_answer answer;

	switch (mrf_msg_type(msg, len)) {
	case MRF_MSG_FORGET:
		mrf_ask_forget(peer);
		return true;
	case MRF_MSG_REPLY:
		peer->conn->heard = mrf_now_ms();
		/* What was ahead of it is done and completes first. */
		mrf_ep_progress(peer->ep);
		if (mrf_rpc_replied(peer, msg, len))
			return false;
		mrf_peer_advance(peer);
		return true;
	default:
		if (mrf_answer_decode(msg, len, &answer))
			return false;
		peer->conn->heard = mrf_now_ms();
		if (mrf_ask_answered(peer, &answer))
			mrf_peer_advance(peer);
		return true;
	}
}

void mrf_conn_message(struct mrf_conn *conn, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = conn->peer;
	uint8_t msg[MRF_CONN_SLOT_SIZE];

	/*
	 * A flush tells, without anybody polling, that the queue pair broke: take in what broke
	 * it. While connecting it is librdmacm that breaks it, and an event tells why.
	 */
	if (wc->status != MRF_WC_OK) {
		if (peer->state == MRF_PEER_CONNECTING)
			return;
		mrf_ep_progress(peer->ep);
		mrf_peer_break(peer);
		return;
	}
	if (slot >= MRF_CONN_SLOTS)
		return;
	/* What it makes of the message may need the slot. */
	memcpy(msg, conn->slots + slot * MRF_CONN_SLOT_SIZE, wc->byte_len);
	if (mrf_conn_post_slot(conn, slot) || !take_message(peer, msg, wc->byte_len)) {
		mrf_warn(FI_LOG_EP_DATA, 4021, "malformed message of %u bytes: disconnecting",
			 wc->byte_len);
		if (peer->state == MRF_PEER_CONNECTING)
			mrf_dial_lost(conn);
		else
			on_gone(conn);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's connections: what only the agent thread does. ep->lock is held throughout. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/param.h"
#include "ep/denied.h"
#include "ep/greet.h"
#include "ep/msg.h"
#include "ep/peer_int.h"

#define SLOT_SIZE MRF_PROTO_MAX_REQUEST
/* An answer to each question, a reply, and a note or two. */
#define NSLOTS (MRF_ASKS + 4)
/* Nobody listens there (yet): it may only just be starting. */
#define MAX_TRIES 5
#define RETRY_MS 100
/* The kernel looks for an address so long, and then again. */
#define RESOLVE_MS 250
/* A peer that takes connections and drops them again before anything was done. */
#define MAX_LOSSES 5
/* Flushes come within milliseconds; do not wait for ever for ones that never will. */
#define DRAIN_MS 5000

void mrf_conn_set_deadline(struct mrf_conn *conn, int64_t ms)
{
	struct mrf_agent *agent = conn->peer->ep->agent;

	conn->deadline = mrf_now_ms() + ms;
	mrf_list_del(&conn->timed);
	mrf_list_add_tail(&conn->timed, &agent->timed);
}

/* What is in flight has to come back now. */
static void drain(struct mrf_conn *conn)
{
	conn->draining = true;
	mrf_conn_set_deadline(conn, DRAIN_MS);
}

static void clear_deadline(struct mrf_conn *conn)
{
	mrf_list_del(&conn->timed);
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
	mrf_agent_disown(ep->agent, &conn->owner, NSLOTS);
	mrf_vmr_drop(&conn->slots_mr);
	free(conn->slots);
	free(conn);
	peer->conn = NULL;
	peer->state = MRF_PEER_IDLE;
}

static void fail_addr(struct mrf_peer *peer, int err, int code, const char *why)
{
	char addr[64], text[MRF_ERR_TEXT];

	snprintf(text, sizeof(text), "%.*s: %.*s", (int)sizeof(addr),
		 mrf_addr_text(&peer->addr, addr, sizeof(addr)),
		 (int)(sizeof(text) - sizeof(addr) - 3), why);
	mrf_peer_fail(peer, err, code, text);
}

/* The connection could not be made: whatever waits for it fails. */
static void give_up_why(struct mrf_peer *peer, const struct mrf_why *why)
{
	mrf_conn_destroy(peer->conn);
	mrf_peer_rewind(peer);
	peer->tries = peer->challenges = 0;
	fail_addr(peer, why->err, why->code, why->text);
}

static void give_up_addr(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_why why;

	/* Of an address, or of all that this process asks for. */
	peer->ep->agent->suspect |= err == FI_EACCES;
	mrf_why_set(&why, err, code, "%s", text);
	give_up_why(peer, &why);
}

/* --- making -------------------------------------------------------------------------------- */

static int open_slots(struct mrf_conn *conn)
{
	conn->slots = calloc(NSLOTS + 1, SLOT_SIZE);
	if (!conn->slots)
		return -FI_ENOMEM;
	conn->outgoing = conn->slots + NSLOTS * SLOT_SIZE;
	return mrf_vmr_reg(conn->peer->ep->domain->pd, conn->slots, (NSLOTS + 1) * SLOT_SIZE,
			   (uintptr_t)conn->slots, MRF_RIGHT_LOCAL_WRITE, &conn->slots_mr);
}

static int post_slot(struct mrf_conn *conn, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)(conn->slots + slot * SLOT_SIZE),
			       .len = SLOT_SIZE,
			       .lkey = conn->slots_mr.lkey };

	return mrf_vconn_post_recv(conn->vconn, MRF_WR_ID(conn->owner.id, slot), &sge);
}

static int conn_new(struct mrf_peer *peer, struct mrf_conn **out)
{
	struct mrf_agent *agent = peer->ep->agent;
	struct mrf_conn *conn = calloc(1, sizeof(*conn));
	int ret;

	if (!conn)
		return -FI_ENOMEM;
	conn->peer = peer;
	conn->owner.kind = MRF_OWNER_CONN;
	mrf_list_init(&conn->timed);
	ret = mrf_agent_own(agent, &conn->owner, NSLOTS);
	if (ret)
		goto err_free;
	ret = mrf_idmap_insert(&peer->ep->conns, conn->owner.id, conn);
	if (ret)
		goto err_disown;
	ret = open_slots(conn);
	if (ret)
		goto err_unmap;
	ret = mrf_vconn_open(agent->cm, &conn->owner, &conn->vconn);
	if (ret)
		goto err_slots;
	*out = conn;
	return 0;

err_slots:
	mrf_vmr_drop(&conn->slots_mr);
err_unmap:
	free(conn->slots);
	mrf_idmap_remove(&peer->ep->conns, conn->owner.id);
err_disown:
	mrf_agent_disown(agent, &conn->owner, NSLOTS);
err_free:
	free(conn);
	return ret;
}

static int timeout_ms(void)
{
	return (int)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

static void resolve(struct mrf_peer *peer)
{
	int ret = mrf_vconn_resolve(peer->conn->vconn, &peer->ep->domain->addr.sa,
				    &peer->addr.sa, mrf_min(timeout_ms(), RESOLVE_MS),
				    (unsigned)mrf_param_int(MRF_PARAM_ACK_TIMEOUT));

	if (ret)
		give_up_addr(peer, -ret, 4121, "no route from the domain's address");
}

static void start(struct mrf_peer *peer)
{
	int ret = peer->ep->agent->denied ? -FI_EACCES : conn_new(peer, &peer->conn);

	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_peer_denied(peer);
		return;
	}
	if (ret) {
		mrf_peer_fail(peer, -ret, 4120, "no resources for another connection");
		return;
	}
	peer->state = MRF_PEER_CONNECTING;
	mrf_conn_set_deadline(peer->conn, timeout_ms());
	resolve(peer);
}

static int create_qp(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	struct mrf_vqp_attr attr = { .pd = ep->domain->pd,
				     .send_cq = ep->scq,
				     .recv_cq = ep->agent->cq,
				     .send_depth = MRF_CONN_RING - 1,
				     .recv_depth = NSLOTS,
				     .send_sge = MRF_OP_SGE,
				     .max_inline = MRF_OP_INLINE };
	unsigned i;
	int ret = mrf_vconn_create_qp(conn->vconn, &attr);

	for (i = 0; !ret && i < NSLOTS; i++)
		ret = post_slot(conn, i);
	return ret;
}

static void on_addr(struct mrf_conn *conn)
{
	int ret = create_qp(conn);

	conn->found = true;
	if (!ret)
		ret = mrf_vconn_route(conn->vconn, timeout_ms());
	if (ret)
		give_up_addr(conn->peer, -ret, 4122, "no queue pair or no route");
}

static void on_route(struct mrf_conn *conn)
{
	struct mrf_hello hello = { .instance = conn->peer->ep->instance };
	uint8_t data[MRF_PROTO_HELLO_MAX];
	int ret;

	mrf_greet_hello(conn, &hello);
	ret = mrf_vconn_connect(conn->vconn, data, mrf_hello_encode(&hello, data),
				(unsigned)mrf_param_int(MRF_PARAM_RETRY));
	if (ret)
		give_up_addr(conn->peer, -ret, 4123, "the connection request was not accepted");
}

static void on_response(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_why why;
	int ret;

	if (!mrf_greet_welcomed(conn, event, &why)) {
		give_up_why(peer, &why);
		return;
	}
	ret = mrf_vconn_establish(conn->vconn);
	if (ret == -FI_ECONNRESET) {
		give_up_addr(peer, FI_ECONNRESET, 4127, "went away while connecting");
		return;
	}
	if (ret) {
		give_up_addr(peer, -ret, 4201, "the connection cannot be completed");
		return;
	}
	clear_deadline(conn);
	mrf_vdev_retries(peer->ep->domain->vdev, &conn->retries);
	peer->tries = 0;
	peer->state = MRF_PEER_READY;
	mrf_peer_advance(peer);
}

static void on_refused(struct mrf_peer *peer, const struct mrf_cm_event *event)
{
	struct mrf_why why;

	if (!mrf_greet_again(peer, event->data, event->len, &why)) {
		give_up_why(peer, &why);
		return;
	}
	mrf_conn_destroy(peer->conn);
	start(peer);
}

static void on_rejected(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	uint32_t reason;

	if (!mrf_refuse_decode(event->data, event->len, &reason)) {
		on_refused(peer, event);
		return;
	}
	if (++peer->tries >= MAX_TRIES) {
		give_up_addr(peer, FI_ECONNREFUSED, 4126, "no endpoint listens there");
		return;
	}
	/* The id is spent; wait with a new one that does nothing yet. */
	conn->waiting = true;
	mrf_conn_set_deadline(conn, RETRY_MS);
}

static const char *why_failed(int err)
{
	return err == FI_ETIMEDOUT ? "no answer to the connection request" :
				     "the address cannot be reached over this device";
}

static void on_gone(struct mrf_conn *conn, bool connected)
{
	struct mrf_peer *peer = conn->peer;

	if (!connected) {
		give_up_addr(peer, FI_ECONNRESET, 4127, "went away while connecting");
		return;
	}
	if (conn->disconnected)
		return;
	conn->lost = true;
	conn->disconnected = true;
	mrf_peer_break(peer);
	drain(conn);
	mrf_vconn_disconnect(conn->vconn);
}

void mrf_conn_event(struct mrf_conn *conn, const struct mrf_cm_event *event)
{
	struct mrf_peer *peer = conn->peer;
	bool connecting = peer->state == MRF_PEER_CONNECTING;

	switch (event->type) {
	case MRF_CM_ADDR_RESOLVED:
		on_addr(conn);
		break;
	case MRF_CM_UNRESOLVED:
		if (connecting)
			resolve(peer);
		break;
	case MRF_CM_ROUTE_RESOLVED:
		on_route(conn);
		break;
	case MRF_CM_RESPONSE:
		on_response(conn, event);
		break;
	case MRF_CM_REJECTED:
		/* It may have let us in first: then something is in flight. */
		if (connecting)
			on_rejected(conn, event);
		else
			on_gone(conn, true);
		break;
	case MRF_CM_FAILED:
		if (connecting)
			give_up_addr(peer, event->err, 4128, why_failed(event->err));
		else
			on_gone(conn, true);
		break;
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		on_gone(conn, !connecting);
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
	mrf_msg_lost(conn);
	mrf_conn_destroy(conn);
	mrf_peer_rewind(peer);
	if (denied)
		mrf_peer_denied(peer);
	if (++peer->losses < MAX_LOSSES)
		return;
	peer->losses = 0;
	fail_addr(peer, FI_ECONNRESET, 4131, "connects, but drops the connection each time");
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
		start(peer);
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

void mrf_conn_expired(struct mrf_conn *conn)
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
	} else if (conn->waiting) {
		mrf_conn_destroy(conn);
		mrf_conn_service(peer);
	} else if (!conn->found) {
		give_up_addr(peer, FI_ETIMEDOUT, 4128, "no machine answers for that address");
	} else {
		give_up_addr(peer, FI_ETIMEDOUT, 4129, "no answer to the connection request");
	}
}

/* False: it is none that belongs here. */
static bool take_message(struct mrf_peer *peer, const uint8_t *msg, size_t len)
{
	struct mrf_answer answer;
	struct mrf_reply reply;

	switch (mrf_msg_type(msg, len)) {
	case MRF_MSG_FORGET:
		mrf_ask_forget(peer);
		return true;
	case MRF_MSG_REPLY:
		return !mrf_reply_decode(msg, len, &reply) && !mrf_msg_replied(peer, &reply);
	default:
		if (mrf_answer_decode(msg, len, &answer))
			return false;
		mrf_ask_answered(peer, &answer);
		return true;
	}
}

void mrf_conn_message(struct mrf_conn *conn, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = conn->peer;
	uint8_t msg[SLOT_SIZE];

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
	if (slot >= NSLOTS)
		return;
	/* What it makes of the message may need the slot. */
	memcpy(msg, conn->slots + slot * SLOT_SIZE, wc->byte_len);
	if (post_slot(conn, slot) || !take_message(peer, msg, wc->byte_len)) {
		mrf_warn(FI_LOG_EP_DATA, 4021, "malformed message of %u bytes: disconnecting",
			 wc->byte_len);
		on_gone(conn, peer->state != MRF_PEER_CONNECTING);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/param.h"
#include "ep/link/conn.h"
#include "ep/link/greet.h"
#include "ep/msg/lines.h"
#include "mr/demand/backs.h"

/* --- the deadline -------------------------------------------------------------------------- */

void mrf_conn_set_deadline_locked(struct mrf_conn *conn, int64_t ms)
{
	mrf_lock_held(&conn->peer->ep->lock);
	mrf_timer_set(conn->peer->ep->agent, &conn->timer, ms);
}

void mrf_conn_soon_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->soon)
		return;
	conn->soon = true;
	mrf_timer_set(conn->peer->ep->agent, &conn->lease_timer, MRF_LEASE_MS);
}

void mrf_conn_probe_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->probed)
		return;
	conn->probed = true;
	conn->heard = mrf_now_ms();
	mrf_conn_kick_locked(conn->peer);
}

/* --- making and destroying ------------------------------------------------------------------ */

/* What differs between the kinds of connections. */
static const struct shape {
	unsigned slots; /* receives, of which so many are posted at first, */
	unsigned first;
	size_t slot_size; /* bytes of each, */
	size_t room;	  /* and of all memory */
	unsigned sends;
	unsigned places;   /* in the agent's queue */
	size_t max_inline; /* bytes */
} shapes[MRF_CONN_KINDS] = {
	[MRF_CONN_ACCESS] = { MRF_CONN_SLOTS, MRF_CONN_SLOTS, MRF_CONN_SLOT_SIZE, MRF_CONN_ROOM,
			      MRF_CONN_RING - 1, MRF_CONN_SLOTS, MRF_LIMIT_INJECT },
	/* What comes back completes on the endpoint's own queue (ep/msg/inbox.h). */
	[MRF_CONN_LINE] = { MRF_LINE_BACKS, MRF_LINE_NOTES, MRF_FRAME_MAX_BACK, MRF_LINE_ROOM,
			    MRF_WINDOW_MAX + 1, 0, MRF_LIMIT_INJECT + MRF_FRAME_MESSAGE_MAX },
};

static const struct shape *shape_of(const struct mrf_conn *conn)
{
	return &shapes[conn->peer->kind];
}

int mrf_conn_post_slot(struct mrf_conn *conn, unsigned slot)
{
	size_t size = shape_of(conn)->slot_size;
	struct mrf_sge sge = { .addr = (uintptr_t)(conn->slots + slot * size),
			       .len = (uint32_t)size,
			       .lkey = conn->slots_mr.lkey };

	return mrf_vconn_post_recv(conn->vconn, MRF_WR_ID(conn->owner.id, slot), &sge);
}

/* Called without ep->lock: the kernel may take 50 ms to destroy a queue pair. */
static void close_vconn(struct mrf_conn *conn)
{
	if (conn->vconn) {
		mrf_vconn_disconnect(conn->vconn);
		mrf_vconn_close(conn->vconn);
	}
	mrf_vmr_drop(&conn->slots_mr);
	free(conn->slots);
}

/* Called without ep->lock. */
static int open_vconn(struct mrf_conn *conn)
{
	int ret;

	conn->slots = calloc(1, shape_of(conn)->room);
	if (!conn->slots)
		return -FI_ENOMEM;
	if (conn->peer->kind == MRF_CONN_ACCESS)
		conn->outgoing = mrf_conn_outgoing(conn);
	ret = mrf_room_reg(conn->peer->ep->domain->pd, conn->slots, shape_of(conn)->room,
			   (uintptr_t)conn->slots, MRF_RIGHT_LOCAL_WRITE, &conn->slots_mr);
	if (!ret)
		ret = mrf_vconn_open(conn->peer->ep->agent->cm, &conn->owner, &conn->vconn);
	if (ret)
		close_vconn(conn);
	return ret;
}

/* In the queues where its messages complete. Called without ep->lock. */
static int take_places(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	bool line = conn->peer->kind == MRF_CONN_LINE;
	int ret = line ? mrf_inbox_take_places(ep->inbox, MRF_LINE_PLACES) : 0;

	if (ret)
		return ret;
	ret = mrf_agent_own(ep->agent, &conn->owner, shape_of(conn)->places);
	if (ret && line)
		mrf_inbox_give_places(ep->inbox, MRF_LINE_PLACES);
	return ret;
}

static void give_places(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;

	mrf_agent_disown(ep->agent, &conn->owner, shape_of(conn)->places);
	if (conn->peer->kind == MRF_CONN_LINE)
		mrf_inbox_give_places(ep->inbox, MRF_LINE_PLACES);
}

int mrf_conn_new_locked(struct mrf_peer *peer, const struct mrf_conn_calls *calls,
			struct mrf_conn **out)
{
	struct mrf_conn *conn = calloc(1, sizeof(*conn));
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (!conn)
		return -FI_ENOMEM;
	conn->peer = peer;
	conn->mtu = UINT32_MAX;
	conn->owner.calls = &calls->owner;
	conn->owner.scq = peer->ep->scq;
	conn->timer.over = calls->deadline;
	conn->lease_timer.over = calls->leased;
	/* If there is no room in the agent's queues, it makes another one. */
	mrf_conn_unlock(conn);
	ret = take_places(conn);
	mrf_conn_lock(conn);
	if (ret)
		goto err_free;
	ret = mrf_idmap_insert(&peer->ep->conns, conn->owner.id, conn);
	if (ret)
		goto err_disown;
	mrf_conn_unlock(conn);
	ret = open_vconn(conn);
	mrf_conn_lock(conn);
	if (ret)
		goto err_unmap;
	*out = conn;
	return 0;

err_unmap:
	mrf_idmap_remove(&peer->ep->conns, conn->owner.id);
err_disown:
	give_places(conn);
err_free:
	free(conn);
	return ret;
}

void mrf_conn_destroy_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_timer_stop(ep->agent, &conn->timer);
	mrf_timer_stop(ep->agent, &conn->lease_timer);
	peer->known.lately = false;
	ep->scq_used -= conn->tail - conn->head;
	mrf_idmap_remove(&ep->conns, conn->owner.id);
	if (ep->last == conn)
		ep->last = NULL;
	give_places(conn);
	peer->conn = NULL;
	mrf_peer_move_locked(peer, MRF_PEER_END);
	mrf_conn_unlock(conn);
	close_vconn(conn);
	mrf_conn_lock(conn);
	free(conn);
}

/* --- room ---------------------------------------------------------------------------------- */

void mrf_conn_await_room_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&peer->ep->lock);
	if (ep->scq_used >= MRF_EP_SCQ && mrf_list_empty(&peer->starved))
		mrf_list_add_tail(&peer->starved, &ep->starved);
	mrf_conn_watch_locked(peer);
}

void mrf_conn_watch_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&peer->ep->lock);
	if (mrf_list_empty(&peer->watching))
		mrf_list_add_tail(&peer->watching, &ep->watching);
	if (ep->watched)
		return;
	mrf_ep_watch_locked(ep);
	/* Completions that are there already make no event, so the agent polls once. */
	mrf_conn_kick_locked(peer);
}

/* --- loss ---------------------------------------------------------------------------------- */

void mrf_conn_break_locked(struct mrf_peer *peer)
{
	bool was_ready = peer->state == MRF_PEER_READY;

	mrf_lock_held(&peer->ep->lock);
	mrf_peer_move_locked(peer, MRF_PEER_BREAK);
	if (was_ready)
		mrf_conn_kick_locked(peer);
}

void mrf_conn_denied_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	conn->cause = MRF_WC_DENIED;
	mrf_conn_break_locked(conn->peer);
}

/* Puts the queue pair into error; leaves ep->lock meanwhile. */
static void cut_locked(struct mrf_conn *conn)
{
	mrf_peer_move_locked(conn->peer, MRF_PEER_TO_CUT);
	mrf_conn_set_deadline_locked(conn, MRF_DRAIN_MS);
	mrf_conn_unlock(conn);
	mrf_vconn_disconnect(conn->vconn);
	mrf_conn_lock(conn);
}

bool mrf_conn_end_denied_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (mrf_likely(conn->cause != MRF_WC_DENIED))
		return false;
	if (conn->peer->state != MRF_PEER_CUT)
		cut_locked(conn);
	return true;
}

void mrf_conn_gone_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->peer->state == MRF_PEER_CUT)
		return;
	mrf_conn_break_locked(conn->peer);
	cut_locked(conn);
}

/* --- an attempt to connect ------------------------------------------------------------------ */

/*
 * The kernel looks for the peer's address for MRF_RESOLVE_MS at a time, again and again
 * until FI_MRFAB_CONN_TIMEOUT: an answer that arrives before the kernel waits for one is
 * found only by a new search.
 */
int mrf_conn_timeout(void)
{
	return (int)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

/* --- failures ------------------------------------------------------------------------------ */

/* It fails, for a reason that the kernel or the device gives: FAILED. */
static enum mrf_attempt fail_attempt_locked(const struct mrf_peer *peer, int err, int code,
					    const char *text, struct mrf_why *why)
{
	/* The error may be about this address, or about everything that this process asks for. */
	peer->ep->agent->suspect |= err == FI_EACCES;
	mrf_why_set(why, err, code, "%s", text);
	return MRF_ATTEMPT_FAILED;
}

/*
 * The same, once the address has been found: what the kernel denies then is denied to the whole
 * process.
 */
static enum mrf_attempt fail_found_locked(const struct mrf_peer *peer, int err, int code,
					  const char *text, struct mrf_why *why)
{
	if (err == FI_EACCES)
		return fail_attempt_locked(peer, err, 5204, MRF_DENIED_TEXT, why);
	return fail_attempt_locked(peer, err, code, text, why);
}

enum mrf_attempt mrf_conn_lost_locked(const struct mrf_peer *peer, struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(why, FI_ECONNRESET, 4127,
		    "the peer went away while the connection was being made");
	return MRF_ATTEMPT_LOST;
}

/* The kernel has given up. */
static enum mrf_attempt on_failed_locked(const struct mrf_peer *peer, int err, struct mrf_why *why)
{
	const char *text = "the address cannot be reached over this device";

	if (err == FI_ETIMEDOUT)
		text = "no answer to the connection request";
	return fail_found_locked(peer, err, 4128, text, why);
}

/* --- LOOKING to ASKING --------------------------------------------------------------------- */

enum mrf_attempt mrf_conn_resolve_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	const struct mrf_peer *peer = conn->peer;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_resolve(conn->vconn, &peer->ep->domain->addr.sa, &peer->addr.sa,
				mrf_min(mrf_conn_timeout(), MRF_RESOLVE_MS),
				(unsigned)mrf_param_int(MRF_PARAM_ACK_TIMEOUT));
	mrf_conn_lock(conn);
	if (!ret)
		return MRF_ATTEMPT_GOES_ON;
	return fail_attempt_locked(peer, -ret, 4121,
				   "there is no route from the domain's address: is its "
				   "interface up, and is the peer in a network that it reaches "
				   "(ip route get)?",
				   why);
}

/* Called without ep->lock. */
static int create_conn_qp(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	const struct shape *shape = shape_of(conn);
	bool line = conn->peer->kind == MRF_CONN_LINE;
	struct mrf_vqp_attr attr = { .pd = ep->domain->pd,
				     .send_cq = ep->scq,
				     .recv_cq = line ? ep->lines->vcq : conn->owner.cq->vcq,
				     .send_depth = shape->sends,
				     .recv_depth = shape->slots,
				     /* The head of a frame is a piece more. */
				     .send_sge = MRF_LOCAL_SGE + line,
				     .max_inline = (uint32_t)shape->max_inline };
	unsigned i;
	int ret = mrf_vconn_create_qp(conn->vconn, &attr);

	for (i = 0; !ret && i < shape->first; i++)
		ret = mrf_conn_post_slot(conn, i);
	return ret;
}

static enum mrf_attempt on_addr_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	int ret;

	mrf_peer_move_locked(conn->peer, MRF_PEER_FOUND);
	mrf_conn_unlock(conn);
	ret = create_conn_qp(conn);
	if (!ret)
		ret = mrf_vconn_route(conn->vconn, mrf_conn_timeout());
	mrf_conn_lock(conn);
	if (!ret)
		return MRF_ATTEMPT_GOES_ON;
	return fail_found_locked(conn->peer, -ret, 4122,
				 "no queue pair can be made, or there is no route", why);
}

static void say_kind_locked(const struct mrf_peer *peer, struct mrf_hello *hello)
{
	switch (peer->kind) {
	case MRF_CONN_ACCESS:
		hello->lost = peer->target.lost;
		return;
	case MRF_CONN_LINE:
		hello->flags = MRF_HELLO_MESSAGES | (uint32_t)mrf_addr_port(&peer->ep->addr)
							    << MRF_HELLO_PORT_SHIFT;
		return;
	case MRF_CONN_KINDS:
		break;
	}
}

static enum mrf_attempt on_route_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	struct mrf_hello hello = { .ticket = conn->peer->target.ticket };
	uint8_t data[MRF_PROTO_HELLO_MAX];
	int ret;

	say_kind_locked(conn->peer, &hello);
	mrf_greet_hello_locked(conn, &hello);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_connect(conn->vconn, data, mrf_hello_encode(&hello, data),
				(unsigned)mrf_param_int(MRF_PARAM_RETRY));
	mrf_conn_lock(conn);
	if (ret)
		return fail_found_locked(conn->peer, -ret, 4123,
					 "the connection request was not accepted", why);
	mrf_peer_move_locked(conn->peer, MRF_PEER_ASK);
	return MRF_ATTEMPT_ASKED;
}

/* --- ASKING to READY ----------------------------------------------------------------------- */

/* Called before anything is posted on the connection, without ep->lock. */
static void begin_counting(struct mrf_conn *conn)
{
	uint32_t mtu;

	mrf_vdev_retries(conn->peer->ep->domain->vdev, &conn->retries);
	/* Messages are counted as one packet each. */
	if (!mrf_vconn_psn(conn->vconn, &conn->psn, &mtu) && mtu >= MRF_PROTO_MAX_REQUEST)
		conn->mtu = mtu;
}

enum mrf_attempt mrf_conn_establish_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	struct mrf_peer *peer = conn->peer;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_establish(conn->vconn);
	if (!ret && conn->peer->kind == MRF_CONN_ACCESS)
		begin_counting(conn);
	mrf_conn_lock(conn);
	if (ret == -FI_ECONNRESET)
		return mrf_conn_lost_locked(peer, why);
	if (ret)
		return fail_found_locked(peer, -ret, 4201, "the connection cannot be completed",
					 why);
	mrf_timer_stop(peer->ep->agent, &conn->timer);
	conn->since = mrf_now_ms();
	mrf_peer_move_locked(peer, MRF_PEER_UP);
	return MRF_ATTEMPT_GOES_ON;
}

enum mrf_attempt mrf_conn_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
				       struct mrf_why *why)
{
	uint32_t reason;

	mrf_lock_held(&conn->peer->ep->lock);
	switch (event->type) {
	case MRF_CM_ADDR_RESOLVED:
		return on_addr_locked(conn, why);
	case MRF_CM_UNRESOLVED:
		return MRF_ATTEMPT_NOT_FOUND;
	case MRF_CM_ROUTE_RESOLVED:
		return on_route_locked(conn, why);
	case MRF_CM_RESPONSE:
		return mrf_greet_welcomed_locked(conn, event, why) ? MRF_ATTEMPT_WELCOMED
								   : MRF_ATTEMPT_FAILED;
	case MRF_CM_REJECTED:
		/* Did an endpoint refuse, or does none listen? */
		return mrf_refuse_decode(event->data, event->len, &reason) ? MRF_ATTEMPT_NOBODY
									   : MRF_ATTEMPT_REFUSED;
	case MRF_CM_FAILED:
		return on_failed_locked(conn->peer, event->err, why);
	case MRF_CM_DISCONNECTED:
		return mrf_conn_lost_locked(conn->peer, why);
	case MRF_CM_REMOVED:
		mrf_conn_lost_locked(conn->peer, why);
		return MRF_ATTEMPT_FAILED;
	default:
		return MRF_ATTEMPT_GOES_ON;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "ep/link/conn.h"
#include "mr/demand/backs.h"

/* --- the deadline -------------------------------------------------------------------------- */

void mrf_conn_set_deadline_locked(struct mrf_conn *conn, int64_t ms)
{
	mrf_lock_held(&conn->peer->ep->lock);
	mrf_timer_set(conn->peer->ep->agent, &conn->timer, ms);
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

int mrf_conn_post_slot(struct mrf_conn *conn, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)(conn->slots + slot * MRF_CONN_SLOT_SIZE),
			       .len = MRF_CONN_SLOT_SIZE,
			       .lkey = conn->slots_mr.lkey };

	return mrf_vconn_post_recv(conn->vconn, MRF_WR_ID(conn->owner.id, slot), &sge);
}

static int open_slots(struct mrf_conn *conn)
{
	conn->slots = calloc(1, MRF_CONN_ROOM);
	if (!conn->slots)
		return -FI_ENOMEM;
	conn->outgoing = mrf_conn_outgoing(conn);
	return mrf_room_reg(conn->peer->ep->domain->pd, conn->slots, MRF_CONN_ROOM,
			    (uintptr_t)conn->slots, MRF_RIGHT_LOCAL_WRITE, &conn->slots_mr);
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
	int ret = open_slots(conn);

	if (!ret)
		ret = mrf_vconn_open(conn->peer->ep->agent->cm, &conn->owner, &conn->vconn);
	if (ret)
		close_vconn(conn);
	return ret;
}

int mrf_conn_new_locked(struct mrf_peer *peer, const struct mrf_conn_calls *calls,
			struct mrf_conn **out)
{
	struct mrf_agent *agent = peer->ep->agent;
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
	/* There may be no room in the agent's queues: then it makes another. */
	mrf_conn_unlock(conn);
	ret = mrf_agent_own(agent, &conn->owner, MRF_CONN_SLOTS);
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
	mrf_agent_disown(agent, &conn->owner, MRF_CONN_SLOTS);
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
	ep->scq_used -= conn->tail - conn->head;
	mrf_idmap_remove(&ep->conns, conn->owner.id);
	if (ep->last == conn)
		ep->last = NULL;
	mrf_agent_disown(ep->agent, &conn->owner, MRF_CONN_SLOTS);
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
	ep->watched = true;
	mrf_agent_cq_watch(ep->agent, ep->scq, ep);
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

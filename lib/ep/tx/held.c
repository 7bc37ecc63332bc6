/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/limits.h"
#include "ep/link/conn.h"
#include "ep/model/ep.h"
#include "ep/tx/ahead.h"
#include "ep/tx/held.h"
#include "loop/agent_calls.h"
#include "obj/cq.h"
#include "proto/proto.h"

/* Is there room for another request of few bytes? */
static bool takes_more_locked(const struct mrf_window *window)
{
	return window->last - window->first < MRF_REQUESTS &&
	       window->len + MRF_PROTO_REQUEST_HEAD + MRF_LIMIT_INJECT <= MRF_PROTO_MAX_REQUEST &&
	       window->reply_len + MRF_PROTO_REPLY_HEAD + MRF_LIMIT_INJECT <= MRF_PROTO_MAX_REPLY;
}

/*
 * The application starts one operation, and has completions to read, for each of which it may start
 * another one: these go in one message, unless there is one already that waits for what is held.
 */
static bool is_held_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&ep->lock);
	return ep->starting && ep->tx_cq && mrf_cq_unread(ep->tx_cq) &&
	       takes_more_locked(&peer->conn->window) && !mrf_ahead_next_locked(peer);
}

/* The application may not read them. */
static void set_timer(struct mrf_kick *kick)
{
	struct mrf_peer *peer = mrf_container_of(kick, struct mrf_peer, held_kick);
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	if (peer->conn && !mrf_list_empty(&peer->held))
		mrf_conn_soon_locked(peer->conn);
	mrf_lock_release(&ep->lock);
}

bool mrf_held_begin_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (!is_held_locked(peer))
		return false;
	if (mrf_list_empty(&peer->held))
		mrf_list_add_tail(&peer->held, &peer->ep->held);
	if (!peer->conn->soon)
		mrf_agent_kick(peer->ep->agent, &peer->held_kick);
	return true;
}

void mrf_held_init(struct mrf_peer *peer)
{
	mrf_list_init(&peer->held);
	mrf_list_init(&peer->held_kick.node);
	peer->held_kick.look = set_timer;
}

void mrf_held_fini_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_agent_unkick(peer->ep->agent, &peer->held_kick);
	mrf_list_del(&peer->held);
}

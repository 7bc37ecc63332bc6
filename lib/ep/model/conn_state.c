/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include "ep/model/account.h"
#include "ep/model/conn_state.h"
#include "ep/model/peer.h"

/* --- ours: the tables --------------------------------------------------------------------- */

/* A 0, where the table has nothing, means that the move is not in the diagram. */
#define TO(state) ((uint8_t)((state) + 1))

static const uint8_t peer_moves[MRF_PEER_STATES][MRF_PEER_MOVES] = {
	[MRF_PEER_IDLE] = { [MRF_PEER_DIAL] = TO(MRF_PEER_LOOKING) },
	[MRF_PEER_LOOKING] = { [MRF_PEER_FOUND] = TO(MRF_PEER_ROUTING),
			       [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_ROUTING] = { [MRF_PEER_ASK] = TO(MRF_PEER_ASKING),
			       [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_ASKING] = { [MRF_PEER_PAUSE] = TO(MRF_PEER_PAUSED),
			      [MRF_PEER_UP] = TO(MRF_PEER_READY),
			      [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_PAUSED] = { [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_READY] = { [MRF_PEER_BREAK] = TO(MRF_PEER_BROKEN),
			     [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_BROKEN] = { [MRF_PEER_BREAK] = TO(MRF_PEER_BROKEN),
			      [MRF_PEER_DRAIN] = TO(MRF_PEER_DRAINING),
			      [MRF_PEER_TO_CUT] = TO(MRF_PEER_CUT),
			      [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_DRAINING] = { [MRF_PEER_BREAK] = TO(MRF_PEER_DRAINING),
				[MRF_PEER_TO_CUT] = TO(MRF_PEER_CUT),
				[MRF_PEER_END] = TO(MRF_PEER_IDLE) },
	[MRF_PEER_CUT] = { [MRF_PEER_BREAK] = TO(MRF_PEER_CUT),
			   [MRF_PEER_END] = TO(MRF_PEER_IDLE) },
};

#define BIT(type) (1u << (type))
#define LOST (BIT(MRF_CM_DISCONNECTED) | BIT(MRF_CM_REMOVED))

static const uint16_t heard[MRF_PEER_STATES] = {
	[MRF_PEER_LOOKING] = BIT(MRF_CM_ADDR_RESOLVED) | BIT(MRF_CM_UNRESOLVED) |
			     BIT(MRF_CM_FAILED) | BIT(MRF_CM_REMOVED),
	[MRF_PEER_ROUTING] = BIT(MRF_CM_ROUTE_RESOLVED) | BIT(MRF_CM_FAILED) | BIT(MRF_CM_REMOVED),
	[MRF_PEER_ASKING] = BIT(MRF_CM_RESPONSE) | BIT(MRF_CM_REJECTED) | BIT(MRF_CM_FAILED) | LOST,
	[MRF_PEER_PAUSED] = BIT(MRF_CM_REMOVED),
	[MRF_PEER_READY] = BIT(MRF_CM_REJECTED) | BIT(MRF_CM_FAILED) | LOST,
	[MRF_PEER_BROKEN] = BIT(MRF_CM_REJECTED) | BIT(MRF_CM_FAILED) | LOST,
	[MRF_PEER_DRAINING] = BIT(MRF_CM_REJECTED) | BIT(MRF_CM_FAILED) | LOST,
};

enum mrf_peer_state mrf_peer_next(enum mrf_peer_state state, enum mrf_peer_move move)
{
	unsigned to = peer_moves[state][move];

	return to ? (enum mrf_peer_state)(to - 1) : MRF_PEER_STATES;
}

bool mrf_peer_hears(enum mrf_peer_state state, enum mrf_cm_type type)
{
	return heard[state] >> type & 1;
}

/* --- ours: moving ------------------------------------------------------------------------- */

void mrf_conn_state_wrong(const char *what, unsigned state, unsigned move)
{
#ifdef MRF_LOCKRANK
	fprintf(stderr, "mrfab: %s: state %u, move %u\n", what, state, move);
	abort();
#else
	(void)what, (void)state, (void)move;
#endif
}

void mrf_peer_move_locked(struct mrf_peer *peer, enum mrf_peer_move move)
{
	enum mrf_peer_state to = mrf_peer_next(peer->state, move);

	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(to == MRF_PEER_STATES))
		mrf_conn_state_wrong("a move that a connection cannot make", peer->state, move);
	else
		peer->state = to;
}

/* --- ours: the invariant ------------------------------------------------------------------ */

static bool deadline_right(const struct mrf_peer *peer, const struct mrf_conn *conn)
{
	bool timed = mrf_timer_runs(&conn->timer);

	switch (peer->state) {
	case MRF_PEER_READY:
		return conn->probed || !timed;
	case MRF_PEER_BROKEN:
		return true;
	case MRF_PEER_DRAINING:
	case MRF_PEER_CUT:
		return timed || conn->head == conn->tail;
	default:
		return timed;
	}
}

static bool posted_right(const struct mrf_peer *peer, const struct mrf_conn *conn)
{
	const struct mrf_window *window = &conn->window;

	if (mrf_peer_dials(peer->state))
		return conn->head == conn->tail && window->first == window->last;
	return conn->tail - conn->head < MRF_CONN_RING &&
	       window->last - window->first <= MRF_REQUESTS;
}

static bool conn_right(const struct mrf_peer *peer)
{
	const struct mrf_conn *conn = peer->conn;

	if (peer->state == MRF_PEER_IDLE || !conn)
		return peer->state == MRF_PEER_IDLE && !conn;
	return conn->peer == peer && mrf_idmap_find(&peer->ep->conns, conn->owner.id) == conn &&
	       deadline_right(peer, conn) && posted_right(peer, conn);
}

bool mrf_peer_right_locked(const struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (!conn_right(peer))
		return false;
	if (peer->state < MRF_PEER_READY && peer->known.asks)
		return false;
	return mrf_peer_is_broken(peer->state) || mrf_list_empty(&peer->redo);
}

#ifdef MRF_LOCKRANK
void mrf_peers_check_locked(const struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	mrf_list_each (node, &ep->all_peers) {
		const struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, node);

		if (!mrf_peer_right_locked(peer))
			mrf_conn_state_wrong("a connection is not as its state says", peer->state,
					     MRF_PEER_MOVES);
		if (!mrf_account_right_locked(peer))
			mrf_conn_state_wrong("an operation is not as its account says", peer->state,
					     MRF_PEER_MOVES);
	}
}
#endif

/* --- of a peer ---------------------------------------------------------------------------- */

static const uint8_t passive_moves[MRF_PASSIVE_STATES][MRF_PASSIVE_MOVES] = {
	[MRF_PASSIVE_NEW] = { [MRF_PASSIVE_ADMIT] = TO(MRF_PASSIVE_HALF) },
	[MRF_PASSIVE_HALF] = { [MRF_PASSIVE_CONFIRM] = TO(MRF_PASSIVE_UP),
			       [MRF_PASSIVE_BREAK] = TO(MRF_PASSIVE_HALF_BROKEN),
			       [MRF_PASSIVE_DISCONNECT] = TO(MRF_PASSIVE_DISCONNECTED) },
	[MRF_PASSIVE_UP] = { [MRF_PASSIVE_CONFIRM] = TO(MRF_PASSIVE_UP),
			     [MRF_PASSIVE_BREAK] = TO(MRF_PASSIVE_BROKEN),
			     [MRF_PASSIVE_DISCONNECT] = TO(MRF_PASSIVE_DISCONNECTED) },
	[MRF_PASSIVE_HALF_BROKEN] = { [MRF_PASSIVE_CONFIRM] = TO(MRF_PASSIVE_BROKEN),
				      [MRF_PASSIVE_BREAK] = TO(MRF_PASSIVE_HALF_BROKEN),
				      [MRF_PASSIVE_DISCONNECT] = TO(MRF_PASSIVE_DISCONNECTED) },
	[MRF_PASSIVE_BROKEN] = { [MRF_PASSIVE_CONFIRM] = TO(MRF_PASSIVE_BROKEN),
				 [MRF_PASSIVE_BREAK] = TO(MRF_PASSIVE_BROKEN),
				 [MRF_PASSIVE_DISCONNECT] = TO(MRF_PASSIVE_DISCONNECTED) },
	[MRF_PASSIVE_DISCONNECTED] = { [MRF_PASSIVE_CONFIRM] = TO(MRF_PASSIVE_DISCONNECTED),
				       [MRF_PASSIVE_BREAK] = TO(MRF_PASSIVE_DISCONNECTED),
				       [MRF_PASSIVE_DISCONNECT] = TO(MRF_PASSIVE_DISCONNECTED) },
};

enum mrf_passive_state mrf_passive_next(enum mrf_passive_state state, enum mrf_passive_move move)
{
	unsigned to = passive_moves[state][move];

	return to ? (enum mrf_passive_state)(to - 1) : MRF_PASSIVE_STATES;
}

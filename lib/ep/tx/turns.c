/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"
#include "ep/tx/turns.h"
#include "loop/agent_calls.h"

/* In agent->turns, in the order of arrival: those that have their turn, and those that wait. */
static struct mrf_peer *peer_of(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_peer, turn);
}

static bool same_host(const struct mrf_peer *a, const struct mrf_peer *b)
{
	return mrf_addr_same_host(&a->addr.sa, &b->addr.sa);
}

static unsigned count_dialled(const struct mrf_peer *peer)
{
	unsigned n = 0;

	mrf_list_each (node, &peer->ep->agent->turns)
		n += peer_of(node)->dialled && same_host(peer_of(node), peer);
	return n;
}

bool mrf_turn_take(struct mrf_peer *peer)
{
	if (!mrf_list_empty(&peer->turn))
		return peer->dialled;
	peer->heard = mrf_now_ms();
	peer->dialled = count_dialled(peer) < MRF_TURNS;
	mrf_list_add_tail(&peer->turn, &peer->ep->agent->turns);
	return peer->dialled;
}

void mrf_turn_heard(const struct mrf_peer *peer)
{
	int64_t now = mrf_now_ms();

	mrf_list_each (node, &peer->ep->agent->turns)
		if (same_host(peer_of(node), peer))
			peer_of(node)->heard = now;
}

/* Turns for the peers that have waited longest, and for all that have heard nothing. */
static void pass_on(const struct mrf_peer *from)
{
	unsigned n = count_dialled(from);
	int64_t now = mrf_now_ms();

	mrf_list_each (node, &from->ep->agent->turns) {
		struct mrf_peer *peer = peer_of(node);

		if (peer->dialled || !same_host(peer, from) ||
		    (n >= MRF_TURNS && now - peer->heard < MRF_TURN_SILENT_MS))
			continue;
		n++;
		peer->dialled = true;
		mrf_agent_kick(from->ep->agent, &peer->kick);
	}
}

void mrf_turn_end(struct mrf_peer *peer)
{
	if (mrf_list_empty(&peer->turn))
		return;
	mrf_list_del(&peer->turn);
	pass_on(peer);
}

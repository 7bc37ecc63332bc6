/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/clock.h"
#include "ep/tx/turns.h"
#include "loop/agent_calls.h"

/* In mrf_eps.turns: a host of which some peers have their turn. */
struct mrf_turns {
	struct mrf_list node;
	union mrf_addr addr;
	unsigned dialled;	 /* peers that have their turn; never 0 between two calls */
	struct mrf_list waiting; /* struct mrf_peer.dial.turn, in the order of arrival */
	int64_t heard;		 /* ms: when the host last answered; 0: it has not */
};

/* NULL: no peer there has a turn. */
static struct mrf_turns *find_turns(const struct mrf_peer *peer)
{
	mrf_list_each (node, &mrf_eps_of(peer->ep->agent)->turns) {
		struct mrf_turns *turns = mrf_list_entry(node, struct mrf_turns, node);

		if (mrf_addr_same_host(&turns->addr.sa, &peer->addr.sa))
			return turns;
	}
	return NULL;
}

static struct mrf_turns *find_or_make_turns(const struct mrf_peer *peer)
{
	struct mrf_turns *turns = find_turns(peer);

	if (turns)
		return turns;
	turns = calloc(1, sizeof(*turns));
	if (!turns)
		return NULL;
	turns->addr = peer->addr;
	mrf_list_init(&turns->waiting);
	mrf_list_add_tail(&turns->node, &mrf_eps_of(peer->ep->agent)->turns);
	return turns;
}

bool mrf_turn_take(struct mrf_peer *peer)
{
	struct mrf_turns *turns = peer->dial.turns;

	if (turns)
		return mrf_list_empty(&peer->dial.turn);
	turns = find_or_make_turns(peer);
	/* Without memory for the queue the peer does not wait. */
	if (!turns)
		return true;
	peer->dial.turns = turns;
	peer->dial.waits_since = mrf_now_ms();
	if (turns->dialled < MRF_TURNS)
		turns->dialled++;
	else
		mrf_list_add_tail(&peer->dial.turn, &turns->waiting);
	return mrf_list_empty(&peer->dial.turn);
}

void mrf_turn_heard(const struct mrf_peer *peer)
{
	struct mrf_turns *turns = peer->dial.turns ? peer->dial.turns : find_turns(peer);

	if (turns)
		turns->heard = mrf_now_ms();
}

/* Turns for the peers that have waited longest, and for all that have heard nothing. */
static void pass_on(struct mrf_turns *turns, struct mrf_agent *agent)
{
	int64_t now = mrf_now_ms();
	struct mrf_list *node;

	while ((node = mrf_list_first(&turns->waiting))) {
		struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, dial.turn);

		/*
		 * A peer need not wait any longer if it has waited for so long and nothing was
		 * heard.
		 */
		if (turns->dialled >= MRF_TURNS &&
		    now - mrf_max(turns->heard, peer->dial.waits_since) < MRF_TURN_SILENT_MS)
			return;
		mrf_list_del(node);
		turns->dialled++;
		mrf_agent_kick(agent, &peer->kick);
	}
}

void mrf_turn_end(struct mrf_peer *peer)
{
	struct mrf_turns *turns = peer->dial.turns;

	if (!turns)
		return;
	peer->dial.turns = NULL;
	if (mrf_list_empty(&peer->dial.turn))
		turns->dialled--;
	else
		mrf_list_del(&peer->dial.turn);
	pass_on(turns, peer->ep->agent);
	if (turns->dialled)
		return;
	mrf_list_del(&turns->node);
	free(turns);
}

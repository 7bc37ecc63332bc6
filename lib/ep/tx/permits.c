/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/clock.h"
#include "ep/tx/permits.h"
#include "loop/agent_calls.h"

/* In mrf_eps.permits: a host of which some peers have a permit. */
struct mrf_permits {
	struct mrf_list node;
	union mrf_addr addr;
	unsigned dialled;	 /* peers that have a permit; never 0 between two calls */
	struct mrf_list waiting; /* struct mrf_peer.dial.waits, in the order of arrival */
	int64_t heard;		 /* ms: when the host last answered; 0: it has not */
};

/* NULL: no peer there has a permit. */
static struct mrf_permits *find_permits(const struct mrf_peer *peer)
{
	mrf_list_each (node, &mrf_eps_of(peer->ep->agent)->permits) {
		struct mrf_permits *permits = mrf_list_entry(node, struct mrf_permits, node);

		if (mrf_addr_same_host(&permits->addr.sa, &peer->addr.sa))
			return permits;
	}
	return NULL;
}

static struct mrf_permits *find_or_make_permits(const struct mrf_peer *peer)
{
	struct mrf_permits *permits = find_permits(peer);

	if (permits)
		return permits;
	permits = calloc(1, sizeof(*permits));
	if (!permits)
		return NULL;
	permits->addr = peer->addr;
	mrf_list_init(&permits->waiting);
	mrf_list_add_tail(&permits->node, &mrf_eps_of(peer->ep->agent)->permits);
	return permits;
}

bool mrf_permit_take(struct mrf_peer *peer)
{
	struct mrf_permits *permits = peer->dial.permits;

	if (permits)
		return mrf_list_empty(&peer->dial.waits);
	permits = find_or_make_permits(peer);
	/* Without memory for the queue the peer does not wait. */
	if (!permits)
		return true;
	peer->dial.permits = permits;
	peer->dial.waits_since = mrf_now_ms();
	if (permits->dialled < MRF_PERMITS)
		permits->dialled++;
	else
		mrf_list_add_tail(&peer->dial.waits, &permits->waiting);
	return mrf_list_empty(&peer->dial.waits);
}

void mrf_permit_heard(const struct mrf_peer *peer)
{
	struct mrf_permits *permits = peer->dial.permits ? peer->dial.permits : find_permits(peer);

	if (permits)
		permits->heard = mrf_now_ms();
}

/* Turns for the peers that have waited longest, and for all that have heard nothing. */
static void pass_on(struct mrf_permits *permits, struct mrf_agent *agent)
{
	int64_t now = mrf_now_ms();
	struct mrf_list *node;

	while ((node = mrf_list_first(&permits->waiting))) {
		struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, dial.waits);

		/*
		 * A peer need not wait any longer if it has waited for so long and nothing was
		 * heard.
		 */
		if (permits->dialled >= MRF_PERMITS &&
		    now - mrf_max(permits->heard, peer->dial.waits_since) < MRF_PERMIT_SILENT_MS)
			return;
		mrf_list_del(node);
		permits->dialled++;
		mrf_agent_kick(agent, &peer->kick);
	}
}

void mrf_permit_end(struct mrf_peer *peer)
{
	struct mrf_permits *permits = peer->dial.permits;

	if (!permits)
		return;
	peer->dial.permits = NULL;
	if (mrf_list_empty(&peer->dial.waits))
		permits->dialled--;
	else
		mrf_list_del(&peer->dial.waits);
	pass_on(permits, peer->ep->agent);
	if (permits->dialled)
		return;
	mrf_list_del(&permits->node);
	free(permits);
}

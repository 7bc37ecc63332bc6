/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "ep/model/ep.h"
#include "ep/msg/reverse.h"
#include "obj/av_index.h"

static bool same_endpoint(const union mrf_addr *a, const union mrf_addr *b)
{
	return mrf_addr_port(a) == mrf_addr_port(b) && mrf_addr_same_host(&a->sa, &b->sa);
}

static void part(struct mrf_peer *peer)
{
	if (!peer->line.reverse)
		return;
	peer->line.reverse->reverse = NULL;
	peer->line.reverse = NULL;
}

static void pair_locked(struct mrf_peer *peer, struct mrf_inlet *inlet)
{
	/* Whatever the peer's frames have said of another line may be lost with them. */
	if (peer->line.reverse && peer->line.reverse != inlet)
		mrf_reverse_lost_locked(peer);
	part(peer);
	if (inlet->reverse)
		part(inlet->reverse);
	peer->line.reverse = inlet;
	inlet->reverse = peer;
}

void mrf_reverse_find_inlet_locked(struct mrf_peer *peer)
{
	struct mrf_inbox *inbox = peer->ep->inbox;

	mrf_lock_held(&peer->ep->lock);
	if (peer->line.reverse)
		return;
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		if (!inlet->reverse && same_endpoint(&inlet->origin->addr, &peer->addr)) {
			pair_locked(peer, inlet);
			return;
		}
	}
}

void mrf_reverse_find_peer_locked(struct mrf_inlet *inlet)
{
	struct mrf_ep *ep = inlet->inbox->ep;
	const struct mrf_peers *peers = &ep->peers[MRF_CONN_LINE];
	fi_addr_t addr = mrf_av_find(ep->av, &inlet->origin->addr);

	mrf_lock_held(&ep->lock);
	if (addr < peers->n && peers->of[addr] && !peers->of[addr]->line.reverse)
		pair_locked(peers->of[addr], inlet);
}

void mrf_reverse_forget_peer_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	part(peer);
}

void mrf_reverse_forget_inlet_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	if (inlet->reverse)
		part(inlet->reverse);
}

void mrf_reverse_lost_locked(struct mrf_peer *peer)
{
	struct mrf_inlet *inlet = peer->line.reverse;

	mrf_lock_held(&peer->ep->lock);
	if (!inlet)
		return;
	inlet->origin->unsure = true;
	mrf_inbox_owe_locked(inlet);
}

/* --- a count that has come ------------------------------------------------------------ */

/* They do not know each other, or the count is of a line that this side does not have. */
static __attribute__((noinline)) void find_by_ticket_locked(struct mrf_inlet *inlet,
							    uint64_t ticket)
{
	struct mrf_peer *peer = mrf_idmap_find(&inlet->inbox->ep->tickets, ticket);

	if (peer)
		pair_locked(peer, inlet);
}

static bool has_ticket(const struct mrf_peer *peer, uint64_t ticket)
{
	return peer && peer->target.ticket == ticket;
}

void mrf_reverse_hear_locked(struct mrf_inlet *inlet, const struct mrf_frame_message *frame,
			     unsigned bits)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	if (mrf_unlikely(!has_ticket(inlet->reverse, frame->ticket)))
		find_by_ticket_locked(inlet, frame->ticket);
	if (mrf_likely(has_ticket(inlet->reverse, frame->ticket)))
		inlet->inbox->calls->told(inlet->reverse, frame->taken, bits);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/random.h"
#include "ep/link/conn.h"
#include "ep/msg/reverse.h"
#include "ep/resolve/remote.h"
#include "ep/tx/chores.h"
#include "ep/tx/held.h"
#include "ep/tx/peers.h"
#include "ep/tx/permits.h"

void mrf_peers_init(struct mrf_ep *ep)
{
	mrf_list_init(&ep->all_peers);
	mrf_list_init(&ep->starved);
	mrf_list_init(&ep->watching);
	mrf_list_init(&ep->gathered);
	mrf_list_init(&ep->held);
	mrf_list_init(&ep->woken);
	mrf_idmap_init(&ep->conns);
	mrf_idmap_init(&ep->bulks);
	mrf_idmap_init(&ep->fars);
	mrf_idmap_init(&ep->tickets);
}

void mrf_peers_fini(struct mrf_ep *ep)
{
	enum mrf_conn_kind kind;

	mrf_idmap_fini(&ep->conns);
	mrf_idmap_fini(&ep->bulks);
	mrf_idmap_fini(&ep->fars);
	mrf_idmap_fini(&ep->tickets);
	for (kind = 0; kind < MRF_CONN_KINDS; kind++)
		free(ep->peers[kind].of);
}

/* NULL: no memory, or the address went away meanwhile. */
static struct mrf_peer *peer_new_locked(struct mrf_ep *ep, enum mrf_conn_kind kind,
					fi_addr_t fi_addr, uint64_t gen)
{
	struct mrf_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	if (!mrf_random(&peer->target.ticket, sizeof(peer->target.ticket)) ||
	    mrf_av_get(ep->av, fi_addr, &peer->addr) || mrf_av_gen(ep->av, fi_addr) != gen ||
	    (kind == MRF_CONN_LINE && mrf_idmap_insert(&ep->tickets, peer->target.ticket, peer))) {
		free(peer);
		return NULL;
	}
	peer->ep = ep;
	peer->kind = kind;
	peer->fi_addr = fi_addr;
	peer->gen = gen;
	peer->gen_word = mrf_av_gen_word(ep->av, fi_addr);
	mrf_list_init(&peer->queue);
	mrf_list_init(&peer->redo);
	mrf_list_init(&peer->undelivered);
	mrf_list_init(&peer->offered);
	mrf_chores_init(peer);
	mrf_list_init(&peer->known.to_ask);
	mrf_list_init(&peer->known.asked);
	mrf_list_init(&peer->kick.node);
	peer->kick.look = ep->kicked;
	mrf_list_init(&peer->starved);
	mrf_list_init(&peer->watching);
	mrf_list_init(&peer->gathered);
	mrf_held_init(peer);
	mrf_list_init(&peer->woken);
	mrf_list_init(&peer->dial.waits);
	mrf_idmap_init(&peer->known.remotes);
	mrf_list_add_tail(&peer->node, &ep->all_peers);
	return peer;
}

void mrf_peers_free_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_permit_end(peer);
	mrf_agent_unkick(peer->ep->agent, &peer->kick);
	mrf_list_del(&peer->starved);
	mrf_list_del(&peer->watching);
	mrf_list_del(&peer->gathered);
	mrf_held_fini_locked(peer);
	mrf_list_del(&peer->woken);
	mrf_list_del(&peer->chores.of_ep);
	mrf_list_del(&peer->node);
	mrf_reverse_forget_peer_locked(peer);
	if (peer->kind == MRF_CONN_LINE)
		mrf_idmap_remove(&peer->ep->tickets, peer->target.ticket);
	mrf_remote_fini_locked(peer);
	free(peer);
}

static int grow_peers(struct mrf_peers *peers, fi_addr_t fi_addr)
{
	size_t n = mrf_max(peers->n * 2, fi_addr + 16);
	struct mrf_peer **of = realloc(peers->of, n * sizeof(*of));

	if (!of)
		return -FI_ENOMEM;
	while (peers->n < n)
		of[peers->n++] = NULL;
	peers->of = of;
	return 0;
}

bool mrf_peers_let_go_locked(struct mrf_peer *peer)
{
	struct mrf_peers *peers = &peer->ep->peers[peer->kind];

	mrf_lock_held(&peer->ep->lock);
	if (atomic_load(peer->gen_word) == peer->gen)
		return false;
	if (peers->of[peer->fi_addr] == peer)
		peers->of[peer->fi_addr] = NULL;
	peer->gone = true;
	return true;
}

int mrf_peers_unknown(fi_addr_t fi_addr)
{
	return mrf_refuse(FI_EADDRNOTAVAIL, FI_LOG_EP_DATA, 4002,
			  "fi_addr %#lx is not in the endpoint's address vector (any more)",
			  (unsigned long)fi_addr);
}

static int get_slow_locked(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
			   struct mrf_peer **out)
{
	struct mrf_peers *peers = &ep->peers[kind];
	uint64_t gen = mrf_av_gen(ep->av, fi_addr);
	struct mrf_peer *peer;

	if (!gen)
		return mrf_peers_unknown(fi_addr);
	if (fi_addr >= peers->n && grow_peers(peers, fi_addr))
		return -FI_ENOMEM;
	/* The address was removed, and its number is in use again. */
	if (peers->of[fi_addr]) {
		peers->of[fi_addr]->gone = true;
		mrf_conn_kick_locked(peers->of[fi_addr]);
	}
	peer = peer_new_locked(ep, kind, fi_addr, gen);
	peers->of[fi_addr] = peer;
	if (!peer)
		return -FI_ENOMEM;
	*out = peer;
	return 0;
}

int mrf_peers_get_locked(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
			 struct mrf_peer **out)
{
	const struct mrf_peers *peers = &ep->peers[kind];

	mrf_lock_held(&ep->lock);
	if (mrf_likely(fi_addr < peers->n && peers->of[fi_addr] &&
		       peers->of[fi_addr]->gen == mrf_av_gen(ep->av, fi_addr))) {
		*out = peers->of[fi_addr];
		return 0;
	}
	return get_slow_locked(ep, kind, fi_addr, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the fast paths of common operations (rma_short.h, atomic_short.h, send_short.c).
 * Inline, so that the kind of access is known at compile time; ep->lock held.
 */
#ifndef MRF_EP_SHORT_H
#define MRF_EP_SHORT_H

#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"

/*
 * Flags of the endpoint that the fast paths of accesses need not check: RC acknowledges
 * delivered data only, and an access is matched with nothing.
 */
#define MRF_SHORT_FLAGS                                                                     \
	(FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
	 FI_MATCH_COMPLETE)

/* The peer, if an operation to it can be posted at once; otherwise NULL. */
static inline struct mrf_peer *mrf_short_peer_locked(struct mrf_ep *ep, enum mrf_conn_kind kind,
						     fi_addr_t addr)
{
	struct mrf_peer *peer;

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(addr >= ep->peers[kind].n))
		return NULL;
	peer = ep->peers[kind].of[addr];
	if (mrf_unlikely(!peer || peer->state != MRF_PEER_READY ||
			 peer->gen != atomic_load_explicit(peer->gen_word, memory_order_acquire) ||
			 !mrf_list_empty(&peer->queue) || !mrf_conn_room_of_locked(ep, peer->conn)))
		return NULL;
	return peer;
}

/* Takes a free operation that was used before, and resets it; NULL: none is left. */
static MRF_ALWAYS_INLINE struct mrf_op *mrf_short_take_locked(struct mrf_ep *ep)
{
	struct mrf_list *node = mrf_list_first(&ep->free_ops);
	struct mrf_op *op;

	if (mrf_unlikely(!node))
		return NULL;
	mrf_list_del(node);
	op = mrf_list_entry(node, struct mrf_op, node);
	mrf_op_reset(op);
	return op;
}

/* Finds where the access goes, from the key itself or from the peer's answer about it. */
static MRF_ALWAYS_INLINE bool mrf_short_aim_locked(const struct mrf_peer *peer,
						   enum mrf_op_kind kind, uint64_t key,
						   uint64_t remote, uint64_t len, uint32_t *rkey,
						   uint64_t *remote_addr, uint32_t *event)
{
	struct mrf_key_direct direct;
	uint64_t known_addr;
	uint32_t known_rkey, known_event;

	if (mrf_key_take(&peer->target.key_form, key, &direct)) {
		*rkey = direct.rkey;
		*remote_addr = direct.iova_base + remote;
		*event = 0;
		return true;
	}
	/*
	 * Through variables whose address is taken, so that the caller's stay in
	 * registers.
	 */
	if (!mrf_resolve_cached_locked(peer, key, kind, remote, len, &known_rkey, &known_addr,
				       &known_event))
		return false;
	*rkey = known_rkey;
	*remote_addr = known_addr;
	*event = known_event;
	return true;
}

#endif

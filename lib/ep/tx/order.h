/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order between the two connections to one address, that for accesses and that for messages: fences,
 * and what the program has asked for (FI_ORDER_SAW and the like).
 *
 * A fenced operation starts when all that were started with its peer before it have ended, and so do
 * those that are started after it. Those of its own connection are ahead of it and behind it in one
 * queue. For the others there is a *mark* in the queue of the other connection, an operation of no
 * bytes that nobody hears of: what is behind it there waits as long as it stands. The fenced
 * operation and its mark are mates. When each has come to the front of its queue, and nothing of
 * what was ahead of it is out any more, the mark goes and both queues go on.
 *
 * An operation that has to be processed after others of the other connection has a mark there, too.
 * It goes, and lets its mate go on, when the target has had all that is ahead of it: accesses are
 * acknowledged then, and the target has said that it has taken messages in, though no receive need
 * have taken them. For that, all messages of such an endpoint ask to be told of (MRF_FRAME_ACK, and
 * MRF_FRAME_TELL for offers).
 *
 * There is no mark if there is nothing to wait for. A mark needs no connection, and none is made for
 * it.
 *
 * What a write brings to its target's completion queue (FI_REMOTE_CQ_DATA) is put there by the target's
 * agent, while a message is taken in by whoever polls. So that a message that is sent behind such a write
 * does not come before its entry, the message has a mark behind the write, and the mark becomes a *sync*: a
 * request whose reply says that the agent has taken in what came before it. No order is promised here,
 * but other providers have it, and programs read these entries in turn. A write that is posted again over
 * the next connection is followed there; an entry that is still to be made when its connection is lost may
 * be overtaken.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_TX_ORDER_H
#define MRF_EP_TX_ORDER_H

#include "ep/model/peer.h"

/* What of MRF_MSG_ORDER_EXTRA an endpoint is to keep. */
uint64_t mrf_order_asked(const struct fi_info *info);
/* The other kind of connection. */
enum mrf_conn_kind mrf_order_other(enum mrf_conn_kind kind);
/* Does op, which is about to be queued, need a mark? */
bool mrf_order_needs_locked(const struct mrf_peer *peer, const struct mrf_op *op);
/* op is queued for peer, perhaps again: if it is a write with data, messages are to follow its entry. */
void mrf_order_entry_locked(struct mrf_peer *peer, const struct mrf_op *op);
/* Is there an entry of a write that a message to peer, of kind LINE, has to follow? */
bool mrf_order_follows_entry_locked(const struct mrf_peer *peer);
/* op has been queued; mark, a new operation, becomes its mark in the queue of other. */
void mrf_order_mark_locked(struct mrf_peer *other, struct mrf_op *mark, struct mrf_op *op);
/*
 * Has op, which has op->fence and is the first of the peer that is not wholly posted, to wait? If it
 * has not, and had a mate, the mate's peer is in ep->woken; a mark ends when it is settled.
 */
bool mrf_order_holds_locked(struct mrf_peer *peer, struct mrf_op *op);
/* Is it a sync (tx/sync.h), or is it to become one, instead of a mark that ends? */
static inline bool mrf_order_is_sync(const struct mrf_op *op)
{
	return (op->fence & (MRF_FENCE_MARK | MRF_FENCE_SYNC)) == MRF_FENCE_SYNC;
}

/* op, a sync, was replied to: if it has a mate, that one's peer is in ep->woken. */
void mrf_order_synced_locked(struct mrf_op *op);
/* op fails, or goes with its endpoint, and may have a mate: which is on its own from now on. */
void mrf_order_part_locked(struct mrf_op *op);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/bulk.h"
#include "ep/link/far.h"
#include "ep/link/conn.h"
#include "ep/tx/order.h"
#include "ep/tx/rpc.h"

/* What is asked of either side: a receiver takes everything in as it comes, so its sender sees to it. */
uint64_t mrf_order_asked(const struct fi_info *info)
{
	return ((info->tx_attr ? info->tx_attr->msg_order : 0) |
		(info->rx_attr ? info->rx_attr->msg_order : 0)) &
	       MRF_MSG_ORDER_EXTRA;
}

/* --- has everything before an operation ended? --------------------------------------------- */

static bool is_first(const struct mrf_peer *peer, const struct mrf_op *op)
{
	const struct mrf_list *first = op ? &op->node : &peer->queue;

	return peer->queue.next == first && mrf_list_empty(&peer->redo);
}

static bool conn_is_idle_locked(const struct mrf_conn *conn)
{
	return !mrf_conn_in_flight_locked(conn) && !mrf_rpc_awaited_locked(conn);
}

/* Has all that was queued before op (NULL: all) ended? */
static bool is_clear_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	return is_first(peer, op) && (!peer->conn || conn_is_idle_locked(peer->conn)) &&
	       mrf_list_empty(&peer->undelivered) && mrf_list_empty(&peer->offered) &&
	       (!peer->conn || mrf_bulk_is_idle(peer->conn)) &&
	       (!peer->conn || mrf_far_is_idle(peer->conn)) && !peer->chores.uncompleted &&
	       !peer->chores.unprepared && !peer->lifted;
}

/*
 * Has the target had all that was queued before op (NULL: all)? Of offers it has had the frames, of which
 * the last one has the highest number.
 */
static bool is_reached_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	return is_first(peer, op) && (!peer->conn || conn_is_idle_locked(peer->conn)) &&
	       mrf_list_empty(&peer->undelivered) &&
	       (mrf_list_empty(&peer->offered) ||
		mrf_op_awaiting(peer->offered.prev)->offer < peer->line.taken);
}

/* --- marks ----------------------------------------------------------------------------------- */

enum mrf_conn_kind mrf_order_other(enum mrf_conn_kind kind)
{
	switch (kind) {
	case MRF_CONN_ACCESS:
		return MRF_CONN_LINE;
	case MRF_CONN_LINE:
	case MRF_CONN_KINDS:
		break;
	}
	return MRF_CONN_ACCESS;
}

/* Can the endpoint start operations of this kind at all? */
static bool has_kind(const struct mrf_ep *ep, enum mrf_conn_kind kind)
{
	switch (kind) {
	case MRF_CONN_ACCESS:
		return ep->caps & (FI_RMA | FI_ATOMIC);
	case MRF_CONN_LINE:
	case MRF_CONN_KINDS:
		break;
	}
	return ep->inbox;
}

/* NULL: there is none yet, or it is for an address that was removed. */
static struct mrf_peer *other_of_locked(const struct mrf_peer *peer)
{
	const struct mrf_peers *peers = &peer->ep->peers[mrf_order_other(peer->kind)];
	struct mrf_peer *other = peer->fi_addr < peers->n ? peers->of[peer->fi_addr] : NULL;

	return other && other->gen == peer->gen ? other : NULL;
}

/* The orders by which an operation of this kind has to wait for others of the other connection. */
static uint64_t orders_for(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_READ:
		return FI_ORDER_RAS;
	case MRF_OP_WRITE:
		return FI_ORDER_WAS;
	case MRF_OP_RPC:
	case MRF_OP_ATOMIC:
		return MRF_ORDER_AFTER_SENDS;
	case MRF_OP_SEND:
		break;
	}
	return MRF_ORDER_OF_SENDS;
}

static bool fence_needs_locked(const struct mrf_peer *peer, const struct mrf_peer *other)
{
	return has_kind(peer->ep, mrf_order_other(peer->kind)) &&
	       (!is_clear_locked(peer, NULL) || (other && !is_clear_locked(other, NULL)));
}

static void have_entry_locked(struct mrf_peer *peer, uint64_t stamp)
{
	mrf_lock_held(&peer->ep->lock);
	peer->entries = mrf_max(peer->entries, stamp);
	peer->ep->entries = true;
}

void mrf_order_entry_locked(struct mrf_peer *peer, const struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (op->imm.has && peer->kind == MRF_CONN_ACCESS && peer->ep->inbox)
		have_entry_locked(peer, op->stamp);
}

bool mrf_order_follows_entry_locked(const struct mrf_peer *peer)
{
	const struct mrf_peer *other = peer->kind == MRF_CONN_LINE ? other_of_locked(peer) : NULL;

	mrf_lock_held(&peer->ep->lock);
	return other && other->entries;
}

/* Has op to be processed after others of the other connection? */
static bool order_needs_locked(const struct mrf_peer *other, const struct mrf_op *op)
{
	return other && other->ep->orders & orders_for(op->type->kind) &&
	       !is_reached_locked(other, NULL);
}

bool mrf_order_needs_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	const struct mrf_peer *other = other_of_locked(peer);

	mrf_lock_held(&peer->ep->lock);
	if (mrf_order_follows_entry_locked(peer))
		return true;
	if (op->fence & MRF_FENCE_ALL)
		return fence_needs_locked(peer, other);
	return order_needs_locked(other, op);
}

/* It is posted never: when its turn has come, all of it is done. */
static const struct mrf_op_type mark_type = { .kind = MRF_OP_RPC, .begun = true };

static void mate_locked(struct mrf_op *op, struct mrf_op *mark)
{
	mark->fence |= MRF_FENCE_MATED;
	mark->mate = op;
	op->fence |= MRF_FENCE_MATED;
	op->mate = mark;
}

void mrf_order_mark_locked(struct mrf_peer *other, struct mrf_op *mark, struct mrf_op *op)
{
	mrf_lock_held(&other->ep->lock);
	mark->type = &mark_type;
	mark->peer = other;
	mark->silent = true;
	mark->stamp = op->stamp;
	mark->fence = (op->fence & MRF_FENCE_ALL) | MRF_FENCE_MARK;
	if (!(op->fence & MRF_FENCE_ALL) && !order_needs_locked(other, op))
		mark->fence |= MRF_FENCE_SYNC;
	mate_locked(op, mark);
	mark->queued = true;
	mrf_list_add_tail(&mark->node, &other->queue);
}

/* --- waiting --------------------------------------------------------------------------------- */

static struct mrf_op *mate_of(const struct mrf_op *op)
{
	return op->fence & MRF_FENCE_MATED ? op->mate : NULL;
}

static void wake_locked(struct mrf_peer *peer)
{
	mrf_list_del(&peer->woken);
	mrf_list_add_tail(&peer->woken, &peer->ep->woken);
}

/* Neither waits for the other any more. */
static void part_locked(struct mrf_op *op, struct mrf_op *mate)
{
	op->fence &= (uint8_t) ~(MRF_FENCE_MATED | MRF_FENCE_ALL);
	mate->fence &= (uint8_t) ~(MRF_FENCE_MATED | MRF_FENCE_ALL);
}

/* Will op, a mark, become a sync when its turn has come? */
static bool may_sync_locked(const struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	return op->fence & MRF_FENCE_MARK && op->peer->entries && op->peer->state == MRF_PEER_READY;
}

/* Its connection is lost, and what is in flight there may have to be posted again, before a mark. */
static bool may_be_redone_locked(const struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	return peer->conn && mrf_peer_is_broken(peer->state) && !conn_is_idle_locked(peer->conn);
}

static bool has_to_wait_locked(const struct mrf_peer *peer, const struct mrf_op *op,
			       const struct mrf_op *mate)
{
	if (op->fence & MRF_FENCE_ALL)
		return !is_clear_locked(peer, op) || (mate && !is_clear_locked(mate->peer, mate));
	if (op->fence & MRF_FENCE_SYNC)
		return !is_first(peer, op) || may_be_redone_locked(peer);
	/* An operation goes on when its mark has gone. */
	return mate && !(op->fence & MRF_FENCE_MARK && is_reached_locked(peer, op));
}

/* A mark's turn has come. Is it to be a sync? Then its mate goes on when that is replied to. */
static bool becomes_sync_locked(struct mrf_op *op, struct mrf_op *mate)
{
	if (!mate || !may_sync_locked(op))
		return false;
	/* Others may wait behind it. */
	if (op->peer->entries < op->stamp)
		op->peer->entries = 0;
	op->fence = MRF_FENCE_MATED | MRF_FENCE_SYNC;
	mate->fence &= (uint8_t)~MRF_FENCE_ALL;
	return true;
}

bool mrf_order_holds_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_op *mate = mate_of(op);

	mrf_lock_held(&peer->ep->lock);
	if (mrf_order_is_sync(op))
		return false;
	if (has_to_wait_locked(peer, op, mate))
		return true;
	if (becomes_sync_locked(op, mate))
		return false;
	if (mate && may_sync_locked(mate)) {
		wake_locked(mate->peer);
		return true;
	}
	op->fence &= (uint8_t)~MRF_FENCE_ALL;
	if (mate) {
		part_locked(op, mate);
		wake_locked(mate->peer);
	}
	return false;
}

void mrf_order_synced_locked(struct mrf_op *op)
{
	struct mrf_op *mate = mate_of(op);

	mrf_lock_held(&op->peer->ep->lock);
	if (!mate)
		return;
	part_locked(op, mate);
	wake_locked(mate->peer);
}

/*
 * The message op, which sync was for, does not wait any more. What is behind it has relied on that, unless
 * it has a mark, which is behind the sync. False: there is nothing.
 */
static bool pass_sync_on_locked(const struct mrf_op *op, struct mrf_op *sync)
{
	mrf_lock_held(&op->peer->ep->lock);
	mrf_list_each (node, &op->peer->queue) {
		struct mrf_op *next = mrf_list_entry(node, struct mrf_op, node);

		if (next->stamp <= op->stamp || next->fence & MRF_FENCE_MARK)
			continue;
		if (!mate_of(next))
			mate_locked(next, sync);
		return true;
	}
	return false;
}

void mrf_order_part_locked(struct mrf_op *op)
{
	struct mrf_op *mate = mate_of(op);

	mrf_lock_held(&op->peer->ep->lock);
	if (!mate)
		return;
	part_locked(op, mate);
	/* Or the next one that follows the entry is to wait for it. */
	if (mrf_order_is_sync(mate) && !pass_sync_on_locked(op, mate))
		have_entry_locked(mate->peer, mate->stamp);
	mrf_conn_kick_locked(mate->peer);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/bulk.h"
#include "ep/link/conn.h"
#include "ep/tx/order.h"
#include "ep/tx/peers.h"
#include "ep/tx/rpc.h"

/* --- has everything before an operation ended? --------------------------------------------- */

static bool is_first(const struct mrf_peer *peer, const struct mrf_op *op)
{
	const struct mrf_list *first = op ? &op->node : &peer->queue;

	return peer->queue.next == first && mrf_list_empty(&peer->redo);
}

static bool conn_is_idle_locked(const struct mrf_conn *conn)
{
	return !mrf_conn_in_flight_locked(conn) && !mrf_rpc_awaited_locked(conn) &&
	       !(conn->bulk && mrf_bulk_in_flight(conn->bulk));
}

/* Has all that was queued before op (NULL: all) ended? */
static bool is_clear_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	return is_first(peer, op) && (!peer->conn || conn_is_idle_locked(peer->conn)) &&
	       mrf_list_empty(&peer->undelivered) && mrf_list_empty(&peer->offered) &&
	       !peer->chores.uncompleted && !peer->chores.unprepared && !peer->lifted;
}

/* --- marks ----------------------------------------------------------------------------------- */

static enum mrf_conn_kind other_kind(const struct mrf_peer *peer)
{
	switch (peer->kind) {
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
	const struct mrf_peers *peers = &peer->ep->peers[other_kind(peer)];
	struct mrf_peer *other = peer->fi_addr < peers->n ? peers->of[peer->fi_addr] : NULL;

	return other && other->gen == peer->gen ? other : NULL;
}

int mrf_order_needs_locked(struct mrf_peer *peer, const struct mrf_op *op, struct mrf_peer **other)
{
	mrf_lock_held(&peer->ep->lock);
	*other = NULL;
	if (!(op->fence & MRF_FENCE_ALL) || !has_kind(peer->ep, other_kind(peer)))
		return 0;
	*other = other_of_locked(peer);
	if (is_clear_locked(peer, NULL) && (!*other || is_clear_locked(*other, NULL))) {
		*other = NULL;
		return 0;
	}
	return mrf_peers_get_locked(peer->ep, other_kind(peer), peer->fi_addr, other);
}

/* It is posted never: when its turn has come, all of it is done. */
static const struct mrf_op_type mark_type = { .kind = MRF_OP_RPC, .begun = true };

void mrf_order_mark_locked(struct mrf_peer *other, struct mrf_op *mark, struct mrf_op *op)
{
	mrf_lock_held(&other->ep->lock);
	mark->type = &mark_type;
	mark->peer = other;
	mark->silent = true;
	mark->stamp = op->stamp;
	mark->fence = MRF_FENCE_ALL | MRF_FENCE_MATED | MRF_FENCE_MARK;
	mark->mate = op;
	op->fence |= MRF_FENCE_MATED;
	op->mate = mark;
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

bool mrf_order_holds_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_op *mate = mate_of(op);

	mrf_lock_held(&peer->ep->lock);
	if (!(op->fence & MRF_FENCE_ALL))
		return false;
	if (!is_clear_locked(peer, op) || (mate && !is_clear_locked(mate->peer, mate)))
		return true;
	op->fence &= (uint8_t)~MRF_FENCE_ALL;
	if (mate) {
		part_locked(op, mate);
		wake_locked(mate->peer);
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
	mrf_conn_kick_locked(mate->peer);
}

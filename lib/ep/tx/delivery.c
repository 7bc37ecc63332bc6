/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/conn.h"
#include "ep/tx/delivery.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/settle.h"

void mrf_delivery_await_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->undelivered = 1;
	mrf_list_add_tail(&op->send.await, &peer->undelivered);
	/* An acknowledged frame tells nothing of a machine that goes afterwards. */
	mrf_conn_probe_locked(peer->conn);
}

void mrf_delivery_unawait_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (!op->undelivered)
		return;
	op->undelivered = 0;
	mrf_list_del(&op->send.await);
}

static bool is_taken(const struct mrf_peer *peer, const struct mrf_op *op)
{
	return (int32_t)((uint32_t)peer->line.taken - op->psn.to) >= 0;
}

void mrf_delivery_told_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while ((node = mrf_list_first(&peer->undelivered)) &&
	       is_taken(peer, mrf_op_awaiting(node))) {
		struct mrf_op *op = mrf_op_awaiting(node);

		mrf_delivery_unawait_locked(op);
		mrf_settle_locked(op);
	}
	if (peer->gone && mrf_list_empty(&peer->undelivered))
		mrf_conn_kick_locked(peer);
}

/* What is told of op if the target does not know it, or there is none any more. */
static enum mrf_wc_status cause_of(const struct mrf_conn *conn)
{
	return conn->cause == MRF_WC_DENIED ? MRF_WC_DENIED : MRF_WC_FLUSHED;
}

static void to_doubt_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	op->doubt = (uint8_t)cause_of(peer->conn);
	op->broken.posted = true;
	op->queued = true;
	mrf_list_add_head(&op->node, &peer->redo);
	peer->target.lost = peer->conn->target_qpn;
}

/* They were posted before all that is in redo: from the last one to the first. */
void mrf_delivery_doubt_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	while (!mrf_list_empty(&peer->undelivered)) {
		struct mrf_op *op = mrf_op_awaiting(peer->undelivered.prev);

		mrf_delivery_unawait_locked(op);
		to_doubt_locked(peer, op);
	}
}

void mrf_delivery_abandon_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while ((node = mrf_list_first(&peer->undelivered))) {
		struct mrf_op *op = mrf_op_awaiting(node);

		mrf_delivery_unawait_locked(op);
		if (!op->inflight)
			mrf_list_add_tail(&op->node, &peer->redo);
	}
}

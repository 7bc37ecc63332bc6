/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/conn.h"
#include "ep/tx/offered.h"
#include "ep/tx/settle.h"

struct mrf_op *mrf_offered_find_locked(struct mrf_peer *peer, uint64_t number)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_list_each (node, &peer->offered) {
		if (mrf_op_awaiting(node)->offer == number)
			return mrf_op_awaiting(node);
	}
	return NULL;
}

void mrf_offered_await_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->offered = 1;
	mrf_list_add_tail(&op->send.await, &peer->offered);
}

void mrf_offered_unawait_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (!op->offered)
		return;
	op->offered = 0;
	mrf_list_del(&op->send.await);
}

void mrf_offered_end_locked(struct mrf_op *op)
{
	struct mrf_peer *peer = op->peer;

	mrf_lock_held(&peer->ep->lock);
	mrf_offered_unawait_locked(op);
	op->acked = op->pos = op->total;
	peer->dial.losses = 0;
	mrf_settle_locked(op);
	if (peer->gone)
		mrf_conn_kick_locked(peer);
}

void mrf_offered_fail_locked(struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&op->peer->ep->lock);
	mrf_offered_unawait_locked(op);
	mrf_settle_fail_locked(op, why);
}

void mrf_offered_fail_all_locked(struct mrf_peer *peer, const struct mrf_why *why)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while ((node = mrf_list_first(&peer->offered)))
		mrf_offered_fail_locked(mrf_op_awaiting(node), why);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/account.h"
#include "ep/model/ep.h"
#include "ep/tx/ahead.h"
#include "ep/tx/chores.h"
#include "ep/tx/rpc.h"

#define AHEAD 4 /* operations of which chunks are copied */

struct mrf_list *mrf_ahead_next_locked(const struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_list_each (node, &peer->queue) {
		const struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (!mrf_rpc_waits(op) || !mrf_account_posted(op))
			return node;
	}
	return NULL;
}

/* May its bytes be copied before those of the operations ahead of it are posted? */
static bool is_for_ahead(const struct mrf_op *op)
{
	return mrf_local_is_ring(&op->local) && mrf_kind_moves(op->type->kind) &&
	       !mrf_kind_arrives(op->type->kind) && !op->fence && !op->unfit;
}

/* The first of a few operations that has a chunk to be copied although it is not its turn, or NULL. */
static struct mrf_op *find_ahead_locked(struct mrf_peer *peer)
{
	struct mrf_list *node = mrf_ahead_next_locked(peer);
	int i;

	mrf_lock_held(&peer->ep->lock);
	for (i = 0; node && node != &peer->queue && i < AHEAD; i++, node = node->next) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (!is_for_ahead(op))
			break;
		if (mrf_stage_has_step(&op->local, op->acked))
			return op;
	}
	return NULL;
}

/* What is copied next: first what the queue waits for. */
static struct mrf_op *find_copy_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	bool has_step = op->queued && mrf_stage_has_step(&op->local, op->acked);
	struct mrf_op *ahead;

	if (has_step && mrf_ahead_next_locked(peer) == &op->node)
		return op;
	ahead = find_ahead_locked(peer);
	return ahead || !has_step ? ahead : op;
}

void mrf_ahead_copy_locked(struct mrf_peer *peer, struct mrf_op *op, mrf_prepared *then)
{
	mrf_lock_held(&peer->ep->lock);
	if (peer->chores.unprepared)
		return;
	op = find_copy_locked(peer, op);
	if (op)
		mrf_chores_prepare_locked(peer->ep, op, then);
}

bool mrf_ahead_tries_again_locked(const struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (!op->queued || op->unfit || mrf_ahead_next_locked(peer) == &op->node)
		return false;
	op->unfit = true;
	return true;
}

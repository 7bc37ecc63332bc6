/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/account.h"
#include "ep/msg/reverse.h"
#include "ep/resolve/ask.h"
#include "ep/tx/delivery.h"
#include "ep/tx/order.h"
#include "ep/tx/rewind.h"

void mrf_rewind_queue_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	peer->entries = 0;
	mrf_delivery_doubt_locked(peer);
	/* Goes from the last to the first, which keeps the order. */
	while (!mrf_list_empty(&peer->redo)) {
		node = peer->redo.prev;
		mrf_list_del(node);
		mrf_list_add_head(node, &peer->queue);
	}
	mrf_list_each (pos, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(pos, struct mrf_op, node);

		mrf_account_lost_locked(op);
		mrf_order_entry_locked(peer, op);
	}
	mrf_ask_lost_locked(peer);
	mrf_reverse_lost_locked(peer);
}

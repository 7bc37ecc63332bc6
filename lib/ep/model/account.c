/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "ep/model/account.h"
#include "ep/model/ep.h"
#include "ep/model/peer.h"

/* A way to be out fits into its byte, and a byte of op->out is 0 exactly if op is not out that way. */
_Static_assert(MRF_CONN_RING - 1 <= UINT8_MAX && MRF_REQUESTS <= UINT8_MAX, "counts are bytes");
_Static_assert(MRF_WC_OK == 0 && MRF_WC_OTHER <= UINT8_MAX, "what is told of a doubt is a byte");
_Static_assert(offsetof(struct mrf_op, offered) < offsetof(struct mrf_op, out) + sizeof(uint64_t),
	       "all ways are in op->out");

void mrf_account_rewind_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (op->type->again)
		op->type->again(op->peer->ep, op);
	op->again = false;
	op->pos = op->acked;
	op->imm.posted &= !op->type->data;
	op->resolved = false;
	op->plain = false;
	op->empty_known = 0;
}

void mrf_account_lost_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	op->resolved = false;
	op->empty_known = 0;
	op->broken.counted = false;
}

bool mrf_account_disown_locked(struct mrf_op *op)
{
	struct mrf_window *window;
	bool may_run = false;
	unsigned i;

	mrf_lock_held(&op->peer->ep->lock);
	if (!op->awaiting)
		return false;
	window = &op->peer->conn->window;
	for (i = window->first; i != window->last; i++) {
		struct mrf_awaited *awaited = &window->awaited[i % MRF_REQUESTS];

		if (awaited->op != op)
			continue;
		awaited->op = NULL;
		may_run |= !window->stopped;
	}
	op->awaiting = 0;
	return may_run;
}

#ifdef MRF_LOCKRANK
void mrf_account_close_locked(const struct mrf_op *op)
{
	if (!op->out)
		return;
	fprintf(stderr,
		"mrfab: an operation ends that is out: %u work requests, %u replies, "
		"chore %u, doubt %u, undelivered %u, offered %u\n",
		op->inflight, op->awaiting, op->chore, op->doubt, op->undelivered, op->offered);
	abort();
}

static void count_far(const struct mrf_far *far, int by)
{
	unsigned i;

	for (i = far->head; i != far->tail; i++)
		far->out[i % MRF_PROTO_STAGES].op->inflight += (uint8_t)by;
	for (i = far->first; i != far->last; i++)
		far->in[i % MRF_FAR_IN].op->inflight += (uint8_t)by;
}

/* Takes what is out on the connection off the accounts, or (by 1) puts it back. */
static void count_locked(const struct mrf_conn *conn, int by)
{
	const struct mrf_window *window = &conn->window;
	unsigned i;

	for (i = conn->head; i != conn->tail; i++) {
		struct mrf_op *op = conn->ring[i % MRF_CONN_RING].op;

		if (op)
			op->inflight = (uint8_t)(op->inflight + by);
	}
	for (i = window->first; i != window->last; i++) {
		struct mrf_op *op = window->awaited[i % MRF_REQUESTS].op;

		if (op)
			op->awaiting = (uint8_t)(op->awaiting + by);
	}
	for (i = conn->bulk ? conn->bulk->head : 0; conn->bulk && i != conn->bulk->tail; i++) {
		struct mrf_op *op = conn->bulk->posted[i % MRF_GRANTS].op;

		op->inflight = (uint8_t)(op->inflight + by);
	}
	if (conn->far)
		count_far(conn->far, by);
}

static bool one_right_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	bool chore = peer->chores.unprepared == op || peer->lifted == op;

	return !op->inflight && !op->awaiting && op->chore == chore && op->peer == peer &&
	       op->acked <= op->pos && op->pos <= op->total;
}

static bool queue_right_locked(const struct mrf_peer *peer, const struct mrf_list *queue)
{
	bool right = true;

	mrf_list_each (node, queue) {
		const struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		right &= op->queued && !op->failed && one_right_locked(peer, op);
	}
	return right;
}

static bool ring_right_locked(const struct mrf_peer *peer)
{
	const struct mrf_conn *conn = peer->conn;
	bool right = true;
	unsigned i;

	for (i = conn->head; i != conn->tail; i++) {
		const struct mrf_op *op = conn->ring[i % MRF_CONN_RING].op;

		right &= !op || one_right_locked(peer, op);
	}
	return right;
}

static bool again_right_locked(const struct mrf_list *queue)
{
	bool right = true;

	mrf_list_each (node, queue) {
		const struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		right &= !op->again || op->out;
	}
	return right;
}

bool mrf_account_right_locked(const struct mrf_peer *peer)
{
	bool right = again_right_locked(&peer->queue) && again_right_locked(&peer->redo);

	mrf_lock_held(&peer->ep->lock);
	if (peer->conn)
		count_locked(peer->conn, -1);
	right &= queue_right_locked(peer, &peer->queue) && queue_right_locked(peer, &peer->redo);
	if (!peer->conn)
		return right;
	right &= ring_right_locked(peer);
	count_locked(peer->conn, 1);
	return right;
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "ep/link/conn.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"
#include "ep/tx/op.h"
#include "ep/tx/peer.h"
#include "ep/tx/peers.h"

/* --- beginning ------------------------------------------------------------------------------- */

/* Fewer than MRF_EP_FEW_OPS operations are under way, or wait. */
static bool has_few_locked(const struct mrf_peer *peer)
{
	/* One of several work requests counts several times: never too few. */
	unsigned n = peer->conn ? mrf_conn_in_flight_locked(peer->conn) : 0;

	mrf_list_each (node, &peer->queue) {
		if (++n >= MRF_EP_FEW_OPS)
			break;
	}
	mrf_list_each (node, &peer->chores.list) {
		if (++n >= MRF_EP_FEW_OPS)
			break;
	}
	return n < MRF_EP_FEW_OPS && mrf_list_empty(&peer->redo);
}

static bool has_place_locked(const struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&peer->ep->lock);
	if (mrf_likely(ep->nops < ep->max_ops))
		return true;
	mrf_peer_progress_locked(ep);
	return ep->nops < ep->max_ops || (ep->nops < MRF_EP_ALL_OPS(ep) && has_few_locked(peer));
}

/* more: operations have ended, which are to be finished before their places are free. */
static int begin(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_op **op, bool *more)
{
	struct mrf_peer *peer;
	int ret;

	mrf_lock_take(&ep->lock);
	ret = mrf_peers_get_locked(ep, fi_addr, &peer);
	if (!ret)
		ret = has_place_locked(peer) ? mrf_op_take_locked(ep, op) : -FI_EAGAIN;
	if (!ret)
		(*op)->gen = peer->gen;
	*more = atomic_load(&ep->source.left);
	mrf_chores_unlock(ep);
	return ret;
}

int mrf_entry_begin(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_op **op)
{
	bool more;
	int ret = begin(ep, fi_addr, op, &more);

	return ret == -FI_EAGAIN && more ? begin(ep, fi_addr, op, &more) : ret;
}

static void enqueue_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->stamp = ++peer->ep->clock;
	op->peer = peer;
	op->queued = true;
	mrf_list_add_tail(&op->node, &peer->queue);
}

/*
 * What the next step depends on may be there already: the caller looks itself, once, before the
 * agent is woken to wait for it.
 */
static void post_queued_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&peer->ep->lock);
	ep->starting = true;
	mrf_peer_advance_locked(peer);
	ep->starting = false;
	if (mrf_likely(!ep->waits))
		return;
	ep->waits = false;
	mrf_peer_progress_locked(ep);
	if (peer->state == MRF_PEER_READY && !mrf_list_empty(&peer->queue))
		mrf_peer_wait_locked(peer);
}

int mrf_entry_start(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_op *op, int ret)
{
	struct mrf_peer *peer;

	mrf_lock_take(&ep->lock);
	if (!ret)
		ret = mrf_peers_get_locked(ep, fi_addr, &peer);
	/* The address was removed meanwhile, and its number given to another. */
	if (!ret && mrf_unlikely(peer->gen != op->gen))
		ret = mrf_peers_unknown(fi_addr);
	if (!ret) {
		enqueue_locked(peer, op);
		post_queued_locked(peer);
	}
	mrf_chores_unlock(ep);
	if (mrf_unlikely(ret))
		mrf_chores_free(ep, op);
	return ret;
}

/* --- fi_cancel ----------------------------------------------------------------------------- */

/* An operation that has written and is to be flushed (begun) is not canceled, either. */
static bool may_cancel_locked(const struct mrf_op *op)
{
	return !op->broken.posted && !op->pos && !op->inflight && !op->awaiting && !op->type->begun;
}

static bool cancel_one_locked(struct mrf_peer *peer, const void *context)
{
	mrf_list_each (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (op->context != context || !may_cancel_locked(op))
			continue;
		mrf_op_leave_locked(op);
		mrf_chores_fail_locked(peer->ep, op, FI_ECANCELED, 4134,
				       "canceled by fi_cancel: nothing was done");
		mrf_peer_advance_locked(peer);
		return true;
	}
	return false;
}

int mrf_entry_cancel_locked(struct mrf_ep *ep, const void *context)
{
	mrf_lock_held(&ep->lock);
	mrf_list_each (node, &ep->all_peers) {
		if (cancel_one_locked(mrf_list_entry(node, struct mrf_peer, node), context))
			return 0;
	}
	return -FI_ENOENT;
}

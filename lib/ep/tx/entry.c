/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/fault.h"
#include "base/iov.h"
#include "buf/uses.h"
#include "ep/link/conn.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"
#include "ep/tx/order.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/peers.h"
#include "ep/tx/settle.h"

/* --- beginning ------------------------------------------------------------------------------- */

/* Adds to n those of a list, as far as it matters. */
static unsigned count_few(const struct mrf_list *list, unsigned n)
{
	mrf_list_each (node, list) {
		if (++n >= MRF_EP_FEW_OPS)
			break;
	}
	return n;
}

/* Fewer than MRF_EP_FEW_OPS operations are under way or waiting. */
static bool has_few_locked(const struct mrf_peer *peer)
{
	/*
	 * An operation of several work requests counts several times, so the number is never too
	 * low.
	 */
	unsigned n = peer->conn ? mrf_conn_in_flight_locked(peer->conn) : 0;

	n = count_few(&peer->queue, n);
	n = count_few(&peer->chores.list, n);
	n = count_few(&peer->undelivered, n);
	n = count_few(&peer->offered, n);
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

/* An operation of this endpoint, reset, which counts as in use from now on. -FI_ENOMEM. */
static int take_op_locked(struct mrf_ep *ep, struct mrf_op **out)
{
	struct mrf_list *node = mrf_list_pop(&ep->free_ops);
	struct mrf_op *op = node ? mrf_list_entry(node, struct mrf_op, node) : malloc(sizeof(*op));

	mrf_lock_held(&ep->lock);
	if (!op)
		return -FI_ENOMEM;
	if (!node)
		op->number = ep->made++;
	mrf_op_reset(op);
	mrf_list_init(&op->node);
	ep->nops++;
	*out = op;
	return 0;
}

/* more: operations have ended that have to be finished before their places are free. */
static int begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr, struct mrf_op **op,
		 bool *more)
{
	struct mrf_peer *peer;
	int ret;

	mrf_lock_take(&ep->lock);
	ret = mrf_peers_get_locked(ep, kind, fi_addr, &peer);
	if (!ret)
		ret = has_place_locked(peer) ? take_op_locked(ep, op) : -FI_EAGAIN;
	if (!ret) {
		(*op)->gen = peer->gen;
		(*op)->behind = ep->nops > 1;
	}
	*more = atomic_load(&ep->source.left);
	mrf_chores_unlock(ep);
	return ret;
}

int mrf_entry_begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
		    struct mrf_op **op)
{
	struct mrf_fault_plan *faults = ep->domain->space.faults;
	bool more;
	int ret = faults ? mrf_fault_refuse(faults, MRF_FAULT_TX, FI_LOG_EP_DATA,
					    "an operation, or a message")
			 : 0;

	if (mrf_unlikely(ret))
		return ret;
	ret = begin(ep, kind, fi_addr, op, &more);

	return ret == -FI_EAGAIN && more ? begin(ep, kind, fi_addr, op, &more) : ret;
}

/*
 * The completion of an operation may be read before its buffer's registration has ended. The
 * next buffer must not find that one in its memlock limit.
 */
static void finish_ended(struct mrf_ep *ep)
{
	while (mrf_unlikely(atomic_load(&ep->ended))) {
		mrf_chores_run(ep);
		if (atomic_load(&ep->ended))
			usleep(20); /* another thread is at it */
	}
}

/* What the completion says of it. */
static uint64_t comp_flags_of(enum mrf_op_kind kind)
{
	uint64_t way = mrf_kind_flag(kind);

	return (way & FI_SEND ? FI_MSG : FI_RMA) | way;
}

/* Is an entry in tx_cq, or what chores.c looks at for each operation, all that its success takes? */
static bool ends_plainly(const struct mrf_ep *ep, const struct mrf_op *op)
{
	uint64_t way = mrf_kind_flag(op->type->kind);

	/* Atomic operations may have results to be copied. */
	if (!way || op->silent || !ep->tx_cq || (way & FI_SEND && ep->snd_cntr))
		return false;
	return mrf_local_is_bare(op->local.kind) && !op->local.rest;
}

int mrf_entry_fill(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	/*
	 * A fenced operation may send what the operations before it bring, unless its bytes have to
	 * be copied at once.
	 */
	bool late = (req->flags & (FI_FENCE | FI_INJECT)) == FI_FENCE &&
		    mrf_kind_flag(req->type->kind) & (FI_WRITE | FI_SEND);
	int ret;

	op->type = req->type;
	op->comp_flags = comp_flags_of(req->type->kind);
	op->context = req->context;
	op->fence = req->flags & FI_FENCE ? MRF_FENCE_ALL : 0;
	op->imm.has = req->flags & FI_REMOTE_CQ_DATA;
	op->imm.data = (uint32_t)req->data;
	op->silent = req->silent || (ep->selective && !(req->flags & FI_COMPLETION));
	op->total = mrf_iov_total(req->iov, req->count);
	op->nrma = (int)req->rma_count;
	if (req->rma_count)
		memcpy(op->rma, req->rma, req->rma_count * sizeof(*req->rma));
	if (op->total > ep->buf.copy_max && !(req->desc && req->desc[0]))
		finish_ended(ep);
	ret = mrf_local_take(&ep->buf,
			     &(struct mrf_local_req){ .iov = req->iov,
						      .desc = req->desc,
						      .count = req->count,
						      .total = op->total,
						      .arrives = mrf_kind_arrives(req->type->kind),
						      .message = req->type->kind == MRF_OP_SEND,
						      .whole = req->type->kind == MRF_OP_SEND,
						      .apart = req->type->parts,
						      .inject = req->flags & FI_INJECT,
						      .late = late,
						      .behind = op->behind },
			     &op->local);
	op->uses = !ret && mrf_uses_begin(&ep->buf, &op->local);
	op->plain = !op->uses && ends_plainly(ep, op);
	return ret;
}

/*
 * What the next step depends on may be there already: the caller looks once by itself before it
 * wakes the agent to wait for it.
 */
static void post_queued_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&peer->ep->lock);
	/* It waits behind one whose question is not sent yet. */
	if (!mrf_list_empty(&peer->gathered))
		return;
	ep->starting = true;
	peer->known.gathers = peer->known.lately && ep->begun;
	ep->begun |= peer->known.lately;
	mrf_peer_advance_locked(peer);
	peer->known.gathers = false;
	ep->starting = false;
	if (mrf_likely(!ep->waits))
		return;
	ep->waits = false;
	mrf_peer_progress_locked(ep);
	if (peer->state == MRF_PEER_READY && !mrf_list_empty(&peer->queue))
		mrf_peer_wait_locked(peer);
}

/* Takes an operation to be a mark, and finds the peer for it. */
static int take_mark_locked(struct mrf_peer *peer, struct mrf_peer **other, struct mrf_op **mark)
{
	struct mrf_ep *ep = peer->ep;
	int ret;

	mrf_lock_held(&ep->lock);
	if (ep->nops >= MRF_EP_ALL_OPS(ep))
		return -FI_EAGAIN;
	ret = mrf_peers_get_locked(ep, mrf_order_other(peer->kind), peer->fi_addr, other);
	return ret ? ret : take_op_locked(ep, mark);
}

static void queue_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	op->stamp = ++peer->ep->clock;
	op->peer = peer;
	op->queued = true;
	mrf_list_add_tail(&op->node, &peer->queue);
	if (mrf_unlikely(op->imm.has))
		mrf_order_entry_locked(peer, op);
}

static int start_ordered_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_peer *other = NULL;
	struct mrf_op *mark;
	int ret = 0;

	mrf_lock_held(&peer->ep->lock);
	if (mrf_order_needs_locked(peer, op))
		ret = take_mark_locked(peer, &other, &mark);
	if (ret)
		return ret;
	queue_locked(peer, op);
	if (other)
		mrf_order_mark_locked(other, mark, op);
	post_queued_locked(peer);
	if (other)
		mrf_peer_advance_locked(other);
	return 0;
}

int mrf_entry_start(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
		    struct mrf_op *op, int ret)
{
	struct mrf_peer *peer;

	mrf_lock_take(&ep->lock);
	if (!ret)
		ret = mrf_peers_get_locked(ep, kind, fi_addr, &peer);
	/* The address was removed meanwhile, and its number was given to another. */
	if (!ret && mrf_unlikely(peer->gen != op->gen))
		ret = mrf_peers_unknown(fi_addr);
	if (!ret && mrf_unlikely(op->fence || ep->orders || ep->entries)) {
		ret = start_ordered_locked(peer, op);
	} else if (!ret) {
		queue_locked(peer, op);
		post_queued_locked(peer);
	}
	mrf_chores_unlock(ep);
	if (mrf_unlikely(ret))
		mrf_chores_free(ep, op);
	return ret;
}

/* --- fi_cancel ----------------------------------------------------------------------------- */

static bool cancel_one_locked(struct mrf_peer *peer, const void *context)
{
	struct mrf_why why;

	mrf_list_each (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		/* One that has written and is to be flushed (begun) is not canceled, either. */
		if (op->context != context || op->broken.posted || op->pos || op->out ||
		    op->type->begun)
			continue;
		mrf_why_set(&why, FI_ECANCELED, 4134, "canceled by fi_cancel: nothing was done");
		mrf_settle_fail_locked(op, &why);
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

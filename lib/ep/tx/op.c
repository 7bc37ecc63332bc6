/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/user.h"
#include "ep/link/conn.h"
#include "ep/model/ep.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/op.h"
#include "mr/desc.h"

static struct mrf_op *one_more_locked(struct mrf_ep *ep)
{
	struct mrf_op *op = malloc(sizeof(*op));

	mrf_lock_held(&ep->lock);
	if (op)
		op->number = ep->made++;
	return op;
}

int mrf_op_take_locked(struct mrf_ep *ep, struct mrf_op **out)
{
	struct mrf_list *node = mrf_list_pop(&ep->free_ops);
	struct mrf_op *op = node ? mrf_list_entry(node, struct mrf_op, node) : one_more_locked(ep);

	mrf_lock_held(&ep->lock);
	if (!op)
		return -FI_ENOMEM;
	mrf_op_reset(op);
	mrf_list_init(&op->node);
	ep->nops++;
	*out = op;
	return 0;
}

/*
 * The completion of an operation may be read before its buffer's registration has ended. The
 * next buffer must not find that one in its memlock limit.
 */
static void finish_ended(struct mrf_ep *ep)
{
	while (mrf_unlikely(atomic_load(&ep->ended))) {
		mrf_op_finish(ep);
		if (atomic_load(&ep->ended))
			usleep(20); /* another thread is at it */
	}
}

int mrf_op_fill(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	op->type = req->type;
	op->comp_flags = FI_RMA | (req->type->kind == MRF_OP_READ ? FI_READ : FI_WRITE);
	op->context = req->context;
	op->fence = req->flags & FI_FENCE;
	op->has_imm = req->flags & FI_REMOTE_CQ_DATA;
	op->imm = (uint32_t)req->data;
	op->silent = req->silent || (ep->selective && !(req->flags & FI_COMPLETION));
	op->total = mrf_iov_total(req->iov, req->count);
	op->nrma = (int)req->rma_count;
	memcpy(op->rma, req->rma, req->rma_count * sizeof(*req->rma));
	if (op->total > ep->buf.copy_max && !(req->desc && req->desc[0]))
		finish_ended(ep);
	return mrf_local_take(&ep->buf,
			      &(struct mrf_local_req){ .iov = req->iov,
						       .desc = req->desc,
						       .count = req->count,
						       .total = op->total,
						       .arrives = req->type->kind == MRF_OP_READ,
						       .inject = req->flags & FI_INJECT },
			      &op->local);
}

/* --- the end -------------------------------------------------------------------------- */

/* False: there are registrations to end first, which takes time: mrf_op_finish. */
static __attribute__((noinline)) bool let_go_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (!op->local.temp) {
		mrf_local_drop(&ep->buf, &op->local);
		return true;
	}
	mrf_list_add_tail(&op->node, &ep->unfinished);
	atomic_fetch_add(&ep->ended, 1);
	atomic_store(&ep->source.left, true);
	return false;
}

/* These are inline for the sake of mrf_op_done_locked. */
static MRF_ALWAYS_INLINE void put_back_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	mrf_list_add_head(&op->node, &ep->free_ops);
	ep->nops--;
}

static MRF_ALWAYS_INLINE void free_op_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_likely((!op->local.temp && !op->local.copy) || let_go_locked(ep, op)))
		put_back_locked(ep, op);
}

void mrf_op_free_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	free_op_locked(ep, op);
}

/* One native element for memory that is pinned, as most are: each buffer has a descriptor. */
static inline bool is_one_pinned(const struct mrf_op *op)
{
	return op->atomic.landed && op->local.ndesc == 1 && op->total == sizeof(uint64_t);
}

/* Straight out of its cell. */
static inline int deliver_one_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(!mrf_desc_live(&ep->domain->space, op->local.desc[0])))
		return -FI_ECANCELED;
	memcpy(op->local.user[0].iov_base, ep->cells->cell[op->number], sizeof(uint64_t));
	return 0;
}

static struct mrf_cntr *cntr_of_locked(const struct mrf_ep *ep, const struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	return op->comp_flags & FI_READ ? ep->rd_cntr : ep->wr_cntr;
}

/* A text that fills its room was cut. */
static void want_whole(const char *text)
{
#ifdef MRF_LOCKRANK
	if (strlen(text) + 1 < MRF_ERR_TEXT)
		return;
	fprintf(stderr, "mrfab: an error text is too long: %s\n", text);
	abort();
#else
	(void)text;
#endif
}

static __attribute__((noinline)) void complete_in_error_locked(struct mrf_ep *ep, struct mrf_op *op,
							       int err, int code, const char *text)
{
	struct mrf_cntr *cntr = cntr_of_locked(ep, op);

	mrf_lock_held(&ep->lock);
	if (ep->tx_cq) {
		struct mrf_comp_err entry = {
			.comp = { .op_context = op->context,
				  .flags = op->comp_flags,
				  .src_addr = FI_ADDR_NOTAVAIL },
			.err = err,
			.prov_errno = code,
		};

		want_whole(text);
		strncpy(entry.text, text, sizeof(entry.text) - 1);
		mrf_cq_write_err(ep->tx_cq, &entry);
	}
	if (cntr)
		mrf_cntr_adderr(cntr, 1);
	mrf_op_free_locked(ep, op);
}

static __attribute__((noinline, cold)) void undelivered_locked(struct mrf_ep *ep, struct mrf_op *op,
							       int why)
{
	int code = why == -FI_ECANCELED ? 4260 : 4261;
	const char *text =
		code == 4260 ? "the operation was done, but the region for its results was "
			       "closed meanwhile"
			     : "the operation was done, but its results cannot be stored: the "
			       "local buffer is not mapped or may not be written";

	mrf_lock_held(&ep->lock);
	mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, code, "%s", text);
	complete_in_error_locked(ep, op, FI_EFAULT, code, text);
}

static MRF_ALWAYS_INLINE void write_completion_locked(struct mrf_ep *ep, const struct mrf_op *op)
{
	struct mrf_cntr *cntr;

	mrf_lock_held(&ep->lock);
	if (ep->tx_cq && !op->silent)
		mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
	cntr = cntr_of_locked(ep, op);
	if (cntr)
		mrf_cntr_add(cntr, 1);
}

/* ret: whether its results were delivered. */
static MRF_ALWAYS_INLINE void complete_locked(struct mrf_ep *ep, struct mrf_op *op, int ret)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(ret)) {
		undelivered_locked(ep, op, ret);
		return;
	}
	write_completion_locked(ep, op);
	free_op_locked(ep, op);
}

/* One native element has neither a copy nor a registration of its own. */
static MRF_ALWAYS_INLINE void complete_one_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	int ret = deliver_one_locked(ep, op);

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(ret)) {
		undelivered_locked(ep, op, ret);
		return;
	}
	write_completion_locked(ep, op);
	put_back_locked(ep, op);
}

void mrf_op_again_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (op->type->again)
		op->type->again(ep, op);
	op->pos = op->acked;
	op->resolved = false;
	op->empty_known = 0;
}

/* --- in turn ------------------------------------------------------------------------------ */
/*
 * Where results belong may have to be read in, or may wait for another thread of the
 * application (userfaultfd): they are copied without ep->lock, by one thread at a time for
 * each peer. What ends meanwhile completes behind them if it is of the same peer.
 */

static bool is_behind_locked(const struct mrf_ep *ep, const struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	return !mrf_list_empty(&op->peer->undelivered);
}

/* Some thread is to copy the results of the peer's first. */
static void leave_delivery_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	mrf_lock_held(&ep->lock);
	mrf_list_add_tail(&peer->delivery, &ep->deliveries);
	atomic_store(&ep->source.left, true);
}

/* Threads that sleep have not seen what this one has, which is busy now. */
static void call_others_locked(struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	if (mrf_list_empty(&ep->deliveries))
		return;
	mrf_wait_call(&ep->link_tx);
	mrf_wait_call(&ep->link_wr);
	mrf_wait_call(&ep->link_rd);
}

/* Not inline for the sake of mrf_op_done_locked. */
static __attribute__((noinline)) void done_in_turn_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	bool behind = is_behind_locked(ep, op);

	mrf_lock_held(&ep->lock);
	/* It is another peer whose results are being copied. */
	if (!behind && !op->local.nuser) {
		complete_locked(ep, op, 0);
		return;
	}
	mrf_list_add_tail(&op->node, &op->peer->undelivered);
	if (behind)
		return;
	ep->holdups++;
	leave_delivery_locked(ep, op->peer);
}

void mrf_op_done_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(ep->holdups))
		done_in_turn_locked(ep, op);
	else if (is_one_pinned(op))
		complete_one_locked(ep, op);
	else if (!op->local.nuser)
		complete_locked(ep, op, 0);
	else
		done_in_turn_locked(ep, op);
}

void mrf_op_fail_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text)
{
	mrf_lock_held(&ep->lock);
	if (mrf_likely(!is_behind_locked(ep, op))) {
		complete_in_error_locked(ep, op, err, code, text);
		return;
	}
	op->failed = true;
	op->local.nuser = 0;
	mrf_why_set(&op->why, err, code, "%s", text);
	mrf_list_add_tail(&op->node, &op->peer->undelivered);
}

/* The peer's first; ret: whether its results were delivered. */
static void complete_first_locked(struct mrf_ep *ep, struct mrf_peer *peer, int ret)
{
	struct mrf_op *op = mrf_list_entry(mrf_list_pop(&peer->undelivered), struct mrf_op, node);

	mrf_lock_held(&ep->lock);
	if (op->failed)
		complete_in_error_locked(ep, op, op->why.err, op->why.code, op->why.text);
	else
		complete_locked(ep, op, ret);
}

static struct mrf_op *first_undelivered_locked(const struct mrf_ep *ep, const struct mrf_peer *peer)
{
	struct mrf_list *node = mrf_list_first(&peer->undelivered);

	mrf_lock_held(&ep->lock);
	return node ? mrf_list_entry(node, struct mrf_op, node) : NULL;
}

/* All of the peer's are delivered: the agent lets go on what waits for that. */
static void delivered_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	mrf_lock_held(&ep->lock);
	ep->holdups--;
	if (peer->fenced || peer->gone)
		mrf_peer_kick_locked(peer);
	peer->fenced = false;
}

/* Copies what came back to the application's buffers. Errors: mrf_op_type.deliver. */
static int deliver_op(struct mrf_ep *ep, struct mrf_op *op)
{
	if (op->type->deliver)
		return op->type->deliver(ep, op);
	return mrf_user_put(op->local.user, (size_t)op->local.nuser, op->local.copy);
}

/*
 * The peer's first, which has results, and those behind it that have none. Lets go of
 * ep->lock meanwhile; that the peer has undelivered operations keeps it.
 */
static void deliver_first_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	struct mrf_op *op = first_undelivered_locked(ep, peer);
	int ret;

	mrf_lock_held(&ep->lock);
	call_others_locked(ep);
	mrf_lock_release(&ep->lock);
	ret = deliver_op(ep, op);
	mrf_lock_take(&ep->lock);
	do {
		complete_first_locked(ep, peer, ret);
		op = first_undelivered_locked(ep, peer);
		ret = 0;
	} while (op && !op->local.nuser);
	if (op)
		leave_delivery_locked(ep, peer);
	else
		delivered_locked(ep, peer);
}

/* Its completion has been written. Lets go of ep->lock meanwhile. */
static void let_buffers_go_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	mrf_lock_release(&ep->lock);
	mrf_local_drop(&ep->buf, &op->local);
	mrf_lock_take(&ep->lock);
	mrf_op_free_locked(ep, op);
	atomic_fetch_sub(&ep->ended, 1);
}

/* NULL: it is empty. */
static struct mrf_list *take_left_locked(struct mrf_ep *ep, struct mrf_list *list)
{
	struct mrf_list *node = mrf_list_pop(list);

	mrf_lock_held(&ep->lock);
	if (node && mrf_list_empty(&ep->deliveries) && mrf_list_empty(&ep->unfinished))
		atomic_store(&ep->source.left, false);
	return node;
}

static bool finish_one_locked(struct mrf_ep *ep)
{
	struct mrf_list *node;

	mrf_lock_held(&ep->lock);
	if ((node = take_left_locked(ep, &ep->deliveries)))
		deliver_first_locked(ep, mrf_list_entry(node, struct mrf_peer, delivery));
	else if ((node = take_left_locked(ep, &ep->unfinished)))
		let_buffers_go_locked(ep, mrf_list_entry(node, struct mrf_op, node));
	return node;
}

void mrf_op_finish(struct mrf_ep *ep)
{
	mrf_lock_take(&ep->lock);
	while (finish_one_locked(ep))
		;
	mrf_lock_release(&ep->lock);
}

void mrf_op_unlock(struct mrf_ep *ep)
{
	mrf_lock_release(&ep->lock);
	if (atomic_load(&ep->source.left))
		mrf_op_finish(ep);
}

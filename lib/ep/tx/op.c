/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/user.h"
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
	if (op->total > MRF_BOUNCE_SIZE && !(req->desc && req->desc[0]))
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

/* The next thread that reads any of its queues and counters calls mrf_op_finish. */
static void leave_to_readers_locked(struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	atomic_store(&ep->source.left, true);
	mrf_wait_leave(&ep->link_tx);
	mrf_wait_leave(&ep->link_rx);
	mrf_wait_leave(&ep->link_wr);
	mrf_wait_leave(&ep->link_rd);
}

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
	leave_to_readers_locked(ep);
	return false;
}

/* Inline for the sake of mrf_op_done_locked. */
static MRF_ALWAYS_INLINE void free_op_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely((op->local.temp || op->local.copy) && !let_go_locked(ep, op)))
		return;
	mrf_list_add_head(&op->node, &ep->free_ops);
	ep->nops--;
}

void mrf_op_free_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	free_op_locked(ep, op);
}

/* Copies what came back to the application's buffers. Errors: mrf_op_type.deliver. */
static __attribute__((noinline)) int deliver_more_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (op->type->deliver)
		return op->type->deliver(ep, op);
	return mrf_user_put(op->local.user, (size_t)op->local.nuser, op->local.copy);
}

/* One native element, as most are: straight out of its cell, into memory that is pinned. */
static inline int deliver_one_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (!op->local.ndesc)
		return deliver_more_locked(ep, op);
	if (mrf_unlikely(!mrf_desc_live(&ep->domain->space, op->local.desc[0])))
		return -FI_ECANCELED;
	memcpy(op->local.user[0].iov_base, ep->cells->cell[op->number], sizeof(uint64_t));
	return 0;
}

static inline int deliver_op_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_likely(op->atomic.landed && op->total == sizeof(uint64_t) && op->local.nuser == 1))
		return deliver_one_locked(ep, op);
	return deliver_more_locked(ep, op);
}

static struct mrf_cntr *cntr_of_locked(const struct mrf_ep *ep, const struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	return op->comp_flags & FI_READ ? ep->rd_cntr : ep->wr_cntr;
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
	mrf_op_fail_locked(ep, op, FI_EFAULT, code, text);
}

void mrf_op_done_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	int ret = op->local.nuser ? deliver_op_locked(ep, op) : 0;
	struct mrf_cntr *cntr;

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(ret)) {
		undelivered_locked(ep, op, ret);
		return;
	}
	if (ep->tx_cq && !op->silent)
		mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
	cntr = cntr_of_locked(ep, op);
	if (cntr)
		mrf_cntr_add(cntr, 1);
	free_op_locked(ep, op);
}

void mrf_op_fail_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text)
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

		strncpy(entry.text, text, sizeof(entry.text) - 1);
		mrf_cq_write_err(ep->tx_cq, &entry);
	}
	if (cntr)
		mrf_cntr_adderr(cntr, 1);
	mrf_op_free_locked(ep, op);
}

/* Takes ep->lock; NULL: there is none. */
static struct mrf_op *take_unfinished(struct mrf_ep *ep)
{
	struct mrf_list *node;

	mrf_lock_take(&ep->lock);
	node = mrf_list_pop(&ep->unfinished);
	if (mrf_list_empty(&ep->unfinished))
		atomic_store(&ep->source.left, false);
	mrf_lock_release(&ep->lock);
	return node ? mrf_list_entry(node, struct mrf_op, node) : NULL;
}

void mrf_op_finish(struct mrf_ep *ep)
{
	struct mrf_op *op;

	while ((op = take_unfinished(ep))) {
		mrf_local_drop(&ep->buf, &op->local);
		mrf_lock_take(&ep->lock);
		mrf_op_free_locked(ep, op);
		atomic_fetch_sub(&ep->ended, 1);
		mrf_lock_release(&ep->lock);
	}
}

void mrf_op_unlock(struct mrf_ep *ep)
{
	mrf_lock_release(&ep->lock);
	if (atomic_load(&ep->source.left))
		mrf_op_finish(ep);
}

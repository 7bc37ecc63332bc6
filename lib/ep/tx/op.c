/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "ep/link/conn.h"
#include "ep/model/ep.h"
#include "ep/tx/chores.h"
#include "ep/tx/op.h"

static struct mrf_op *one_more_locked(struct mrf_ep *ep)
{
	struct mrf_op *op = malloc(sizeof(*op));

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
		mrf_chores_run(ep);
		if (atomic_load(&ep->ended))
			usleep(20); /* another thread is at it */
	}
}

/* What is fenced may send what those before it bring, unless it has to be copied at once. */
static bool sends_late(const struct mrf_req *req)
{
	return (req->flags & (FI_FENCE | FI_INJECT)) == FI_FENCE && req->type->kind == MRF_OP_WRITE;
}

int mrf_op_fill(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	op->type = req->type;
	op->comp_flags = FI_RMA | (req->type->kind == MRF_OP_READ ? FI_READ : FI_WRITE);
	op->context = req->context;
	op->fence = req->flags & FI_FENCE;
	op->imm.has = req->flags & FI_REMOTE_CQ_DATA;
	op->imm.data = (uint32_t)req->data;
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
						       .inject = req->flags & FI_INJECT,
						       .late = sends_late(req) },
			      &op->local);
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

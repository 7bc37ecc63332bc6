/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/user.h"
#include "ep/model/ep.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/op.h"
#include "ep/tx/op_local.h"
#include "mr/desc.h"

static struct mrf_op *one_more(struct mrf_ep *ep)
{
	struct mrf_op *op = malloc(sizeof(*op));

	if (op)
		op->number = ep->made++;
	return op;
}

int mrf_op_take(struct mrf_ep *ep, struct mrf_op **op)
{
	struct mrf_list *node;

	node = mrf_list_pop(&ep->free_ops);
	*op = node ? mrf_list_entry(node, struct mrf_op, node) : one_more(ep);
	if (!*op)
		return -FI_ENOMEM;
	ep->nops++;
	return 0;
}

/* Everything but the arrays, which have their counts. */
static void init(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_req *req)
{
	mrf_op_reset(op);
	mrf_list_init(&op->node);
	op->type = req->type;
	op->comp_flags = FI_RMA | (req->type->kind == MRF_OP_READ ? FI_READ : FI_WRITE);
	op->context = req->context;
	op->fence = req->flags & FI_FENCE;
	op->has_imm = req->flags & FI_REMOTE_CQ_DATA;
	op->imm = (uint32_t)req->data;
	op->silent = req->silent || (ep->selective && !(req->flags & FI_COMPLETION));
	op->total = mrf_iov_total(req->iov, req->count);
	op->stamp = ++ep->clock;
	op->nrma = (int)req->rma_count;
	memcpy(op->rma, req->rma, req->rma_count * sizeof(*req->rma));
}

int mrf_op_new(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op **out)
{
	struct mrf_op *op;
	int ret = mrf_op_take(ep, &op);

	if (ret)
		return ret;
	init(ep, op, req);
	ret = mrf_op_local_take(ep, req, op);
	if (ret) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		ep->nops--;
		return ret;
	}
	*out = op;
	return 0;
}

void mrf_op_free(struct mrf_ep *ep, struct mrf_op *op)
{
	if (op->temp || op->bounce)
		mrf_op_local_drop(ep, op);
	mrf_list_add_head(&op->node, &ep->free_ops);
	ep->nops--;
}

/* What comes back goes where the application wants it. Errors: mrf_op_type.deliver. */
static __attribute__((noinline)) int deliver_more(struct mrf_ep *ep, struct mrf_op *op)
{
	if (op->type->deliver)
		return op->type->deliver(ep, op);
	return mrf_user_put(op->user, (size_t)op->nuser, op->bounce);
}

/* One native element, as most are: straight out of its cell, into memory that is pinned. */
static inline int deliver_one(struct mrf_ep *ep, struct mrf_op *op)
{
	if (!op->ndesc)
		return deliver_more(ep, op);
	if (mrf_unlikely(!mrf_desc_live(&ep->domain->space, op->desc[0])))
		return -FI_ECANCELED;
	memcpy(op->user[0].iov_base, ep->cells->cell[op->number], sizeof(uint64_t));
	return 0;
}

static inline int deliver(struct mrf_ep *ep, struct mrf_op *op)
{
	if (mrf_likely(op->atomic.landed && op->total == sizeof(uint64_t) && op->nuser == 1))
		return deliver_one(ep, op);
	return deliver_more(ep, op);
}

static struct mrf_cntr *cntr_of(const struct mrf_ep *ep, const struct mrf_op *op)
{
	return op->comp_flags & FI_READ ? ep->rd_cntr : ep->wr_cntr;
}

static __attribute__((noinline, cold)) void undelivered(struct mrf_ep *ep, struct mrf_op *op,
							int why)
{
	int code = why == -FI_ECANCELED ? 4260 : 4261;
	const char *text =
		code == 4260
			? "the operation was done, but the region for its results was "
			  "closed meanwhile"
			: "the operation was done, but its results cannot be stored: the "
			  "local buffer is not mapped or may not be written";

	mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, code, "%s", text);
	mrf_op_fail(ep, op, FI_EFAULT, code, text);
}

void mrf_op_done(struct mrf_ep *ep, struct mrf_op *op)
{
	int ret = op->nuser ? deliver(ep, op) : 0;
	struct mrf_cntr *cntr;

	if (mrf_unlikely(ret)) {
		undelivered(ep, op, ret);
		return;
	}
	if (ep->tx_cq && !op->silent)
		mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
	cntr = cntr_of(ep, op);
	if (cntr)
		mrf_cntr_add(cntr, 1);
	mrf_op_free(ep, op);
}

void mrf_op_fail(struct mrf_ep *ep, struct mrf_op *op, int err, int code, const char *text)
{
	struct mrf_cntr *cntr = cntr_of(ep, op);

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
	mrf_op_free(ep, op);
}

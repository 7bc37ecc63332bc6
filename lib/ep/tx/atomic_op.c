/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An atomic operation at the initiator: made, posted, and what comes back delivered.
 *
 * What comes back lands in cells of the endpoint, never in the application's buffer, and
 * is copied when everything is done. A local region that is closed too early would break
 * the queue pair after the target has executed the operation, and what was behind it
 * could not be repeated.
 *
 * Regions with an event number get no native operations but FI_ATOMIC_READ: their
 * target's agent knows whether something was stored, and counts it once per operation.
 *
 * FI_ATOMIC_WRITE is done by compare-and-swap and not by the device's ATOMIC WRITE. rxe
 * has that opcode from Linux 6.2 on, and rdma-core 44 can post it (ibv_wr_atomic_write).
 * It was measured with two processors, on 6.12 and 7.3: one queue pair writes rising
 * values and reads back after each acknowledgement, while others do fetch-and-add to the
 * same word all the time. Two results rule it out:
 *
 * - It is not atomic with the other operations of the device. It stores without the lock
 *   that they hold (rxe_mr_do_atomic_write takes none), so a fetch-and-add that has
 *   loaded the word already overwrites what was acknowledged: 1 of 28,000 atomic writes
 *   was lost on 6.12. Of 205,000 values written by compare-and-swap on 6.1, and 67,000 on
 *   each of the other kernels, none was.
 * - It fails on a busy machine. With two busy loops beside it the connection ended with
 *   "transport retry counter exceeded" in 18 of 22 runs of 15 to 80 s, without them in 3
 *   of 14; with compare-and-swap or plain writes under the same conditions in none of 26
 *   runs. The cause was not looked for.
 *
 * On 6.1 the queue pair for it can be created, and the work request fails.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
#include "base/user.h"
#include "buf/rest.h"
#include "contract/limits.h"
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/atomic_swap.h"
#include "ep/tx/entry.h"
#include "mr/demand/backs.h"
#include "mr/desc.h"

/* --- cells ---------------------------------------------------------------------------- */

static int cells_new(struct mrf_ep *ep, struct mrf_atomic_cells **out)
{
	size_t page = mrf_page_size(), used = MRF_EP_ALL_OPS(ep) * sizeof((*out)->cell[0]);
	size_t len = (sizeof(**out) + used + page - 1) & ~(page - 1);
	struct mrf_atomic_cells *cells = aligned_alloc(page, len);
	int ret;

	if (!cells)
		return -FI_ENOMEM;
	ret = mrf_room_reg(ep->domain->pd, cells->cell, used, (uintptr_t)cells->cell,
			   MRF_RIGHT_LOCAL_WRITE, &cells->mr);
	if (ret)
		free(cells);
	else
		*out = cells;
	return ret;
}

static void cells_free(struct mrf_atomic_cells *cells)
{
	if (!cells)
		return;
	mrf_vmr_drop(&cells->mr);
	free(cells);
}

static bool has_cells(struct mrf_ep *ep)
{
	bool has;

	mrf_lock_take(&ep->lock);
	has = ep->cells;
	mrf_lock_release(&ep->lock);
	return has;
}

/*
 * Makes ep->cells if they do not exist yet. -FI_ENOMEM or another error of registering memory;
 * logged.
 */
static int cells_get(struct mrf_ep *ep)
{
	struct mrf_atomic_cells *cells, *left;
	int ret;

	if (has_cells(ep))
		return 0;
	ret = cells_new(ep, &cells);
	/*
	 * Another thread may have made the cells meanwhile, and used the room that was lacking
	 * here.
	 */
	if (ret && has_cells(ep))
		return 0;
	if (ret)
		return mrf_refuse(-ret, FI_LOG_EP_DATA, 4257,
				  "there is no registered memory for the results of atomic "
				  "operations");
	/* Another thread may have been faster. */
	mrf_lock_take(&ep->lock);
	left = ep->cells ? cells : NULL;
	if (!left)
		ep->cells = cells;
	mrf_lock_release(&ep->lock);
	cells_free(left);
	return 0;
}

void mrf_atomic_cells_free(struct mrf_ep *ep)
{
	cells_free(ep->cells);
}

/* --- making one ----------------------------------------------------------------------- */

static void init(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_atomic_req *req)
{
	size_t size = mrf_atomic_size(req->datatype), i;

	op->type = &mrf_op_atomic;
	op->comp_flags = FI_ATOMIC | (req->family == MRF_ATOMIC_BASE ? FI_WRITE : FI_READ);
	op->atomic.family = (uint8_t)req->family;
	op->atomic.datatype = (uint8_t)req->datatype;
	op->atomic.op = (uint8_t)req->op;
	op->atomic.size = (uint8_t)size;
	op->atomic.native = (req->datatype == FI_INT64 || req->datatype == FI_UINT64) &&
			    (req->op == FI_SUM || req->op == FI_CSWAP || req->op == FI_ATOMIC_READ);
	op->atomic.swaps = op->atomic.native ? 0 : mrf_atomic_swaps(req);
	op->context = req->context;
	op->fence = req->flags & FI_FENCE ? MRF_FENCE_ALL : 0;
	op->silent = req->silent || (ep->selective && !(req->flags & FI_COMPLETION));
	op->nrma = (int)req->rma_count;
	for (i = 0; i < req->rma_count; i++) {
		op->rma[i] = (struct fi_rma_iov){ .addr = req->rma[i].addr,
						  .len = req->rma[i].count * size,
						  .key = req->rma[i].key };
		op->total += op->rma[i].len;
	}
	op->local.kind = MRF_LOCAL_INLINE;
}

/* Lengths become bytes; returns the number of buffers. */
static int in_bytes(const struct mrf_atomic_iov *from, size_t size, struct iovec *iov)
{
	size_t i;

	for (i = 0; i < from->count; i++)
		iov[i] = (struct iovec){ .iov_base = from->iov[i].addr,
					 .iov_len = from->iov[i].count * size };
	return (int)from->count;
}

static bool may_be_staged(const struct mrf_ep *ep)
{
	return ep->domain->space.mode & FI_MR_HMEM;
}

static int gather(struct mrf_ep *ep, uint8_t *to, const struct mrf_atomic_iov *from, size_t size,
		  const char *what)
{
	struct iovec iov[MRF_LIMIT_IOV];
	int n = in_bytes(from, size, iov);
	const struct mrf_staged all = { iov, from->desc, from->count };

	/* Some of the buffers may be memory of a device. */
	if (mrf_unlikely(may_be_staged(ep)))
		return mrf_stage_gather(&ep->buf, &all, 0, mrf_iov_total(iov, from->count), to);
	if (mrf_likely(!mrf_user_take(to, iov, (size_t)n)))
		return 0;
	return mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, 4263,
			  "a buffer of %s (the first is at %p) is NULL, or close to it", what,
			  iov[0].iov_base);
}

/* With FI_MR_HMEM some buffers have no descriptor. */
static void keep_descs(const struct mrf_ep *ep, const struct mrf_op *op, void **desc,
		       const struct mrf_atomic_iov *result)
{
	size_t len = result->count * sizeof(*desc);

	if (op->local.ndesc || (may_be_staged(ep) && result->desc))
		memcpy(desc, result->desc, len);
	else if (may_be_staged(ep))
		memset(desc, 0, len);
}

/* Where results go, and their descriptors. */
static int take_result_places(const struct mrf_ep *ep, struct mrf_op *op,
			      const struct mrf_atomic_iov *result)
{
	void **desc;
	struct iovec *user = mrf_local_user_room(&op->local, result->count, &desc);

	if (!user)
		return -FI_ENOMEM;
	op->local.nuser = in_bytes(result, op->atomic.size, user);
	keep_descs(ep, op, desc, result);
	return 0;
}

static int take_values(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_atomic_req *req)
{
	unsigned kinds = req->family == MRF_ATOMIC_COMPARE ? 3 : mrf_atomic_fetches(op) ? 2 : 1;
	int ret = 0;

	if (kinds * op->total > sizeof(op->local.data) || req->result.count > MRF_LOCAL_IOV) {
		op->local.copy = malloc(kinds * op->total);
		if (!op->local.copy)
			return -FI_ENOMEM;
		op->local.kind = MRF_LOCAL_COPY;
	}
	if (req->op != FI_ATOMIC_READ)
		ret = gather(ep, mrf_atomic_operands(op), &req->operand, op->atomic.size,
			     "operands");
	if (!ret && req->family == MRF_ATOMIC_COMPARE)
		ret = gather(ep, mrf_atomic_comparands(op), &req->compare, op->atomic.size,
			     "comparands");
	if (!ret && mrf_atomic_fetches(op))
		ret = take_result_places(ep, op, &req->result);
	return ret;
}

/* --- descriptors: as mrf_local_check says ------------------------------------------------ */

enum { CODE_MISSING = 4254, CODE_NO_RIGHT, CODE_OUTSIDE };

/* Operands that are injected are copied before the call returns. */
static int check_descs(const struct mrf_ep *ep, const struct mrf_atomic_req *req,
		       const struct mrf_atomic_iov *from, const char *what)
{
	struct iovec iov[MRF_LIMIT_IOV];
	int n = in_bytes(from, mrf_atomic_size(req->datatype), iov);
	bool results = from == &req->result;
	const struct mrf_local_req local = { .iov = iov,
					     .desc = from->desc,
					     .count = (size_t)n,
					     .arrives = results,
					     .inject = !results && req->flags & FI_INJECT };

	return mrf_local_check(&ep->buf, &local, what, CODE_MISSING);
}

static int take_descs(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_atomic_req *req)
{
	int ret = 0;

	if (!(ep->domain->space.mode & (FI_MR_LOCAL | FI_MR_HMEM)))
		return 0;
	if (req->op != FI_ATOMIC_READ)
		ret = check_descs(ep, req, &req->operand, "operands");
	if (!ret && req->family == MRF_ATOMIC_COMPARE)
		ret = check_descs(ep, req, &req->compare, "comparands");
	if (!ret && mrf_atomic_fetches(op))
		ret = check_descs(ep, req, &req->result, "results");
	/* Results in memory of the host are stored without looking at what it is. */
	if (!ret && mrf_atomic_fetches(op) && !may_be_staged(ep))
		op->local.ndesc = (int)req->result.count;
	return ret;
}

/* ep->lock is not held: values may have to be read in, and cells to be registered. */
static int fill(struct mrf_ep *ep, const struct mrf_atomic_req *req, struct mrf_op *op)
{
	int ret;

	init(ep, op, req);
	ret = take_descs(ep, op, req);
	if (!ret)
		ret = take_values(ep, op, req);
	if (!ret && (op->atomic.native || op->atomic.swaps))
		ret = cells_get(ep);
	return ret;
}

int mrf_atomic_submit(struct mrf_ep *ep, const struct mrf_atomic_req *req)
{
	struct mrf_op *op;
	int ret = mrf_entry_begin(ep, MRF_CONN_ACCESS, req->addr, &op);

	return ret ? ret : mrf_entry_start(ep, MRF_CONN_ACCESS, req->addr, op, fill(ep, req, op));
}

/* --- native elements ------------------------------------------------------------------ */

/* Part of it was done and the rest will be posted again: keeps what came back. */
static void collect(struct mrf_ep *ep, struct mrf_op *op)
{
	uint64_t len = op->acked - op->atomic.collected;

	/* Results that a reply brought are there already. */
	if (op->atomic.landed && mrf_atomic_fetches(op))
		memcpy(mrf_atomic_results(op) + op->atomic.collected,
		       mrf_atomic_cell(ep, op, op->atomic.collected), len);
	op->atomic.landed = op->atomic.swapping = false;
	op->atomic.collected = op->acked;
}

static int post_native_locked(struct mrf_peer *peer, struct mrf_op *op,
			      const struct mrf_piece *piece)
{
	struct mrf_ep *ep = peer->ep;
	struct mrf_sge sge = { .len = sizeof(uint64_t), .lkey = ep->cells->mr.lkey };
	struct mrf_vwr wr = { .op = op->atomic.op == FI_CSWAP ? MRF_VWR_CMP_SWP : MRF_VWR_FETCH_ADD,
			      .nsge = 1,
			      .sge = &sge,
			      .remote_addr = piece->addr,
			      .rkey = piece->rkey };
	int ret;

	sge.addr = (uintptr_t)mrf_atomic_cell(ep, op, op->pos);
	if (op->atomic.op != FI_ATOMIC_READ)
		memcpy(&wr.operand, mrf_atomic_operands(op) + op->pos, sizeof(wr.operand));
	if (op->atomic.op == FI_CSWAP)
		memcpy(&wr.compare, mrf_atomic_comparands(op) + op->pos, sizeof(wr.compare));
	ret = mrf_conn_post_locked(peer->conn, &wr, op, sizeof(uint64_t), sizeof(uint64_t));
	if (ret)
		return ret;
	op->pos += sizeof(uint64_t);
	op->atomic.landed = true;
	return 0;
}

/* Can the device do the next element? A target that counts has to know of it. */
static bool lies_well_locked(const struct mrf_op *op, const struct mrf_piece *piece)
{
	return op->atomic.native && mrf_atomic_fits_word(piece) &&
	       (!op->peer->target.events || op->atomic.op == FI_ATOMIC_READ ||
		!mrf_resolve_number_locked(op, op->pos));
}

/* One native element, a swap, or a request. */
static int post_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_piece piece = { .len = 0 };
	bool well;

	mrf_lock_held(&peer->ep->lock);
	if (op->atomic.swapping)
		return -FI_EAGAIN;
	if ((op->atomic.native || op->atomic.swaps) &&
	    !mrf_resolve_piece_locked(op, op->pos, &piece))
		return -FI_ENOKEY;
	if (mrf_atomic_may_swap_locked(peer, op, &piece))
		return mrf_atomic_swap_locked(peer, op, &piece);
	well = lies_well_locked(op, &piece);
	/*
	 * Behind requests, nothing is posted that may be refused. Where the target counts, the next
	 * request depends on the replies to those before it.
	 */
	if (well ? mrf_rpc_awaited_locked(peer->conn)
		 : op->awaiting && peer->target.events && mrf_resolve_number_locked(op, op->pos))
		return -FI_EAGAIN;
	if (well && op->pos - op->atomic.collected < MRF_ATOMIC_CELLS * sizeof(uint64_t))
		return post_native_locked(peer, op, &piece);
	/* Elements are done in order, whether by the device or by the target's agent. */
	if (op->inflight)
		return -FI_EAGAIN;
	collect(peer->ep, op);
	return well ? post_native_locked(peer, op, &piece) : mrf_rpc_post_locked(peer, op);
}

/* --- requests ------------------------------------------------------------------------- */

/* The MRF_ATOMIC_WHAT bits that make the target count once for each of its regions. */
static uint32_t counting_locked(const struct mrf_op *op, uint64_t len)
{
	uint32_t event = 0, number = mrf_resolve_number_locked(op, op->pos), what = 0;
	uint64_t from = 0;
	int i;

	if (!op->peer->target.events || !number)
		return 0;
	if (mrf_resolve_event_locked(op, op->pos + len, &event) && event)
		what |= MRF_ATOMIC_WHAT_COUNT;
	for (i = 0; i < op->nrma; from += op->rma[i++].len) {
		if (op->atomic.stored >> i & 1 && mrf_resolve_number_locked(op, from) == number)
			what |= MRF_ATOMIC_WHAT_STORED;
	}
	return what;
}

static uint64_t fill_request_locked(const struct mrf_op *op, uint64_t len,
				    struct mrf_request *request, uint8_t *body)
{
	mrf_lock_held(&op->peer->ep->lock);
	len = mrf_min(len, MRF_ATOMIC_REQUEST(op->atomic.family));
	request->what = MRF_ATOMIC_WHAT(op->atomic.family, op->atomic.datatype, op->atomic.op) |
			counting_locked(op, len) |
			(mrf_resolve_staged_locked(op, op->pos) ? MRF_ATOMIC_WHAT_STAGED : 0);
	if (op->atomic.op == FI_ATOMIC_READ)
		return len;
	memcpy(body, mrf_atomic_operands(op) + op->pos, len);
	request->body_len = (uint32_t)len;
	if (op->atomic.family == MRF_ATOMIC_COMPARE) {
		memcpy(body + len, mrf_atomic_comparands(op) + op->pos, len);
		request->body_len += (uint32_t)len;
	}
	return len;
}

static bool take_reply(struct mrf_op *op, const struct mrf_reply *reply)
{
	uint64_t from = op->acked;
	int i = 0;

	if (reply->done % op->atomic.size ||
	    reply->body_len != (mrf_atomic_fetches(op) ? reply->done : 0))
		return false;
	memcpy(mrf_atomic_results(op) + op->acked, reply->body, reply->body_len);
	/* In which remote buffer? */
	while (i < op->nrma - 1 && from >= op->rma[i].len)
		from -= op->rma[i++].len;
	if (reply->flags & MRF_REPLY_STORED)
		op->atomic.stored |= (uint8_t)(1u << i);
	return true;
}

static const struct mrf_rpc request = { .type = MRF_MSG_ATOMIC,
					.fill = fill_request_locked,
					.take = take_reply };

/* --- the end -------------------------------------------------------------------------- */

static int deliver(struct mrf_ep *ep, struct mrf_op *op, bool may_wait)
{
	const struct mrf_staged to = { mrf_local_user(&op->local), mrf_local_user_desc(&op->local),
				       (size_t)op->local.nuser };
	int i;

	for (i = 0; i < op->local.ndesc; i++) {
		if (to.iov[i].iov_len && !mrf_desc_live(&ep->domain->space, to.desc[i]))
			return -FI_ECANCELED;
	}
	collect(ep, op);
	if (mrf_unlikely(may_be_staged(ep)))
		return mrf_stage_scatter(&ep->buf, &to, 0, op->total, mrf_atomic_results(op),
					 may_wait);
	return mrf_user_put(to.iov, to.count, mrf_atomic_results(op), may_wait);
}

const struct mrf_op_type mrf_op_atomic = {
	.kind = MRF_OP_ATOMIC,
	.rpc = &request,
	.post = post_locked,
	.again = collect,
	.deliver = deliver,
	.back = mrf_atomic_swap_back_locked,
};

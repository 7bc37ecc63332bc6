/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/atomic_swap.h"

#define TRIES 3

uint8_t mrf_atomic_swaps(const struct mrf_atomic_req *req)
{
	return req->rma_count == 1 && req->rma[0].count == 1 &&
			       mrf_atomic_size(req->datatype) == sizeof(uint64_t)
		       ? TRIES
		       : 0;
}

bool mrf_atomic_may_swap_locked(const struct mrf_peer *peer, const struct mrf_op *op,
				const struct mrf_piece *piece)
{
	const struct mrf_conn *conn = peer->conn;

	mrf_lock_held(&peer->ep->lock);
	/* Something is in flight to the peer, or something else waits. */
	if (!op->atomic.swaps || conn->head != conn->tail ||
	    conn->window.first != conn->window.last || peer->queue.next != &op->node ||
	    peer->queue.prev != &op->node)
		return false;
	return mrf_atomic_fits_word(piece) &&
	       !(peer->target.events && mrf_resolve_number_locked(op, 0));
}

/* The value of the word after op, if it was `before`. */
static uint64_t value_after(const struct mrf_op *op, uint64_t before)
{
	uint64_t value = before;

	return mrf_atomic_apply(op->atomic.datatype, op->atomic.op, &before,
				mrf_atomic_operands(op), mrf_atomic_comparands(op), &value)
		       ? value
		       : before;
}

int mrf_atomic_swap_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_piece *piece)
{
	struct mrf_ep *ep = peer->ep;
	struct mrf_sge sge = { .addr = (uintptr_t)mrf_atomic_cell(ep, op, 0),
			       .len = sizeof(uint64_t),
			       .lkey = ep->cells->mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_CMP_SWP,
			      .nsge = 1,
			      .sge = &sge,
			      .remote_addr = piece->addr,
			      .rkey = piece->rkey };
	int ret;

	mrf_lock_held(&peer->ep->lock);
	/* The first guess is what was left there the last time, or 0. */
	if (op->atomic.swaps == TRIES)
		op->atomic.guess =
			peer->swapped.rkey == piece->rkey && peer->swapped.addr == piece->addr
				? peer->swapped.value
				: 0;
	wr.compare = op->atomic.guess;
	wr.operand = value_after(op, op->atomic.guess);
	ret = mrf_conn_post_locked(peer->conn, &wr, op, 0, sizeof(uint64_t));
	if (ret)
		return ret;
	op->atomic.swaps--;
	op->atomic.swapping = true;
	peer->swapped.rkey = piece->rkey;
	peer->swapped.addr = piece->addr;
	return -FI_EAGAIN;
}

void mrf_atomic_swap_back_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	uint64_t found;

	mrf_lock_held(&peer->ep->lock);
	if (!op->atomic.swapping)
		return;
	op->atomic.swapping = false;
	found = *mrf_atomic_cell(peer->ep, op, 0);
	if (found != op->atomic.guess) {
		op->atomic.guess = found;
		return;
	}
	peer->swapped.value = value_after(op, found);
	op->atomic.landed = true;
	op->pos = op->acked = op->total;
}

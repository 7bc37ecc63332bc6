/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/tx/fail.h"
#include "ep/tx/op.h"
#include "ep/tx/settle.h"

#define PSN_MASK 0xffffffu

/* Is a number of a packet that of b or of one before it? */
static bool psn_upto(uint32_t a, uint32_t b)
{
	return ((b - a) & PSN_MASK) <= PSN_MASK / 2;
}

/* Would its results have come back with the acknowledgement? */
static bool has_results(const struct mrf_op *op)
{
	return op->type->kind == MRF_OP_ATOMIC && op->atomic.family;
}

/* Only the result of a compare-and-swap tells whether it has changed anything. */
static bool is_swapping(const struct mrf_op *op)
{
	return op->type->kind == MRF_OP_ATOMIC && op->atomic.swapping;
}

/* Something of op was done. May it be done again? Bytes may, as long as not all were written. */
static bool may_repeat(const struct mrf_op *op)
{
	return op->type->kind == MRF_OP_WRITE && !op->told;
}

static void fail_done_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	static const char text[] = "the operation was done, but its results were lost with the "
				   "connection to the peer";

	mrf_lock_held(&peer->ep->lock);
	mrf_refuse(FI_ECONNRESET, FI_LOG_EP_DATA, 4115, "%s", text);
	mrf_op_fail_locked(peer->ep, op, FI_ECONNRESET, 4115, text);
}

/* All that was posted of op has been done. */
static void was_done_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->acked = op->pos;
	if (op->pos != op->total || (op->has_imm && !op->imm_posted))
		return;
	mrf_op_leave_locked(op);
	if (op->type->done)
		op->type->done(peer, op);
	else
		mrf_op_done_locked(peer->ep, op);
}

/* psn: the target's next packet. */
static void decide_locked(struct mrf_peer *peer, struct mrf_op *op, uint32_t psn)
{
	bool none = psn_upto(psn, op->psn.from), all = psn_upto(op->psn.to, psn);

	mrf_lock_held(&peer->ep->lock);
	if (!none && (is_swapping(op) || (!all && !may_repeat(op)))) {
		mrf_op_leave_locked(op);
		mrf_peer_doubt_locked(peer, op);
		return;
	}
	if (!none && has_results(op)) {
		mrf_op_leave_locked(op);
		fail_done_locked(peer, op);
		return;
	}
	op->doubt = MRF_WC_OK;
	if (all) {
		was_done_locked(peer, op);
		return;
	}
	mrf_peer_again_locked(peer, op);
	op->imm_posted = false;
}

void mrf_settle_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	peer->lost = 0;
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (!op->doubt)
			continue;
		if (conn->told) {
			decide_locked(peer, op, conn->told_psn);
			continue;
		}
		mrf_op_leave_locked(op);
		mrf_peer_doubt_locked(peer, op);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux 6.1 answers a read of several packets short, without an error, when the memory that it
 * reads from is no longer pinned, and puts the target's queue pair into error. The initiator
 * learns nothing and sends again until its retries are over (3.8 s). What was posted behind the
 * read has not run; but if the link had been down instead, it might have. The number of the
 * packet that the target's queue pair expected next tells these apart (measured on 6.1, 6.12
 * and newer: it is that of the read, and stays when the queue pair is put into error and reset).
 *
 * To ask takes a connection, which takes up to FI_MRFAB_CONN_TIMEOUT if the peer's machine is
 * gone. So where nobody answers, only what is behind a read asks, which is done again anyway.
 */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/tx/doubt.h"
#include "ep/tx/fatal.h"
#include "ep/tx/chores.h"

/* --- which packets were lost -------------------------------------------------------------- */

/* Those beside the first. */
static uint32_t more_packets(const struct mrf_conn *conn, uint64_t len)
{
	return len > conn->mtu ? (uint32_t)((len - 1) / conn->mtu) : 0;
}

void mrf_doubt_begin_locked(struct mrf_conn *conn, const struct mrf_op *op)
{
	unsigned i;

	mrf_lock_held(&conn->peer->ep->lock);
	conn->asks = conn->mtu != UINT32_MAX &&
		     (conn->cause != MRF_WC_TIMEOUT || (op && op->type->kind == MRF_OP_READ));
	conn->psn += conn->head - 1 + conn->more;
	for (i = conn->head - 1; i != conn->tail; i++)
		conn->psn -= more_packets(conn, conn->ring[i % MRF_CONN_RING].len);
}

void mrf_doubt_next_locked(struct mrf_conn *conn, uint64_t len)
{
	mrf_lock_held(&conn->peer->ep->lock);
	conn->psn += 1 + more_packets(conn, len);
}

void mrf_doubt_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_wc_status status)
{
	uint64_t len = conn->ring[(conn->head - 1) % MRF_CONN_RING].len;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!op->broken.doubt)
		op->psn.from = conn->psn;
	op->broken.doubt = (uint8_t)status;
	op->psn.to = conn->psn + 1 + more_packets(conn, len);
	conn->peer->target.lost = conn->target_qpn;
}

/* --- the target has told ------------------------------------------------------------------ */

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

static void fail_lost_result_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	static const char text[] = "the operation was done, but its results were lost with the "
				   "connection to the peer";

	mrf_refuse(FI_ECONNRESET, FI_LOG_EP_DATA, 4115, "%s", text);
	mrf_chores_fail_locked(peer->ep, op, FI_ECONNRESET, 4115, text);
}

/* All that was posted of op has been done. */
static void complete_done_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	op->acked = op->pos;
	if (op->pos != op->total || (op->imm.has && !op->imm.posted))
		return;
	mrf_op_leave_locked(op);
	if (op->type->done)
		op->type->done(peer, op);
	else
		mrf_chores_done_locked(peer->ep, op);
}

/* psn: the target's next packet. */
static void settle_one_locked(struct mrf_peer *peer, struct mrf_op *op, uint32_t psn)
{
	bool none = psn_upto(psn, op->psn.from), all = psn_upto(op->psn.to, psn);

	if (!none && (is_swapping(op) || (!all && !may_repeat(op)))) {
		mrf_fatal_doubt_locked(peer, op);
		return;
	}
	if (!none && has_results(op)) {
		mrf_op_leave_locked(op);
		fail_lost_result_locked(peer, op);
		return;
	}
	op->broken.doubt = MRF_WC_OK;
	if (all) {
		complete_done_locked(peer, op);
		return;
	}
	mrf_op_again_locked(op);
	op->imm.posted = false;
}

void mrf_doubt_settle_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&conn->peer->ep->lock);
	peer->target.lost = 0;
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (!op->broken.doubt)
			continue;
		if (conn->told)
			settle_one_locked(peer, op, conn->told_psn);
		else
			mrf_fatal_doubt_locked(peer, op);
	}
}

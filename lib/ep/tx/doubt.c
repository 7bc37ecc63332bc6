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
#include "ep/tx/doubt.h"

/* Those beside the first. */
static uint32_t more_packets(const struct mrf_conn *conn, uint64_t len)
{
	return len > conn->mtu ? (uint32_t)((len - 1) / conn->mtu) : 0;
}

static bool asks_locked(const struct mrf_conn *conn, const struct mrf_op *op)
{
	mrf_lock_held(&conn->peer->ep->lock);
	switch (conn->cause) {
	case MRF_WC_FLUSHED:
	case MRF_WC_REFUSED:
	case MRF_WC_LOCAL:
		return true;
	case MRF_WC_TIMEOUT:
		return op && op->type->kind == MRF_OP_READ;
	default:
		return false;
	}
}

void mrf_doubt_begin_locked(struct mrf_conn *conn, const struct mrf_op *op)
{
	unsigned i;

	mrf_lock_held(&conn->peer->ep->lock);
	conn->asks = conn->mtu != UINT32_MAX && asks_locked(conn, op);
	conn->psn += conn->head - 1 + conn->more;
	for (i = conn->head - 1; i != conn->tail; i++)
		conn->psn -= more_packets(conn, conn->ring[i % MRF_CONN_RING].len);
}

void mrf_doubt_next_locked(struct mrf_conn *conn, uint64_t len)
{
	mrf_lock_held(&conn->peer->ep->lock);
	conn->psn += 1 + more_packets(conn, len);
}

bool mrf_doubt_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_wc_status status)
{
	uint64_t len = conn->ring[(conn->head - 1) % MRF_CONN_RING].len;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!conn->asks || op->awaiting ||
	    (op->type->kind != MRF_OP_WRITE && op->type->kind != MRF_OP_ATOMIC))
		return false;
	if (!op->doubt)
		op->psn.from = conn->psn;
	op->doubt = (uint8_t)status;
	op->psn.to = conn->psn + 1 + more_packets(conn, len);
	conn->peer->lost = conn->target_qpn;
	return true;
}

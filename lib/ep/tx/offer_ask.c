/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "ep/link/bulk.h"
#include "ep/link/conn.h"
#include "ep/tx/offer_ask.h"
#include "ep/tx/offered.h"

void mrf_offer_begins_locked(struct mrf_peer *peer, bool known)
{
	struct mrf_why why;

	mrf_lock_held(&peer->ep->lock);
	if (known) {
		peer->line.asks = peer->line.offers;
		return;
	}
	peer->line.offers = peer->line.gave_up = false;
	mrf_why_set(&why, FI_ECONNRESET, 4334,
		    "the connection to the peer was lost before the message was received, and its "
		    "endpoint knows nothing of it any more: was it started again?");
	mrf_offered_fail_all_locked(peer, &why);
}

/* The next one that was offered on a line before. NULL: there is none. */
static const struct mrf_op *next_to_ask_locked(const struct mrf_peer *peer)
{
	mrf_list_each (node, &peer->offered) {
		const struct mrf_op *op = mrf_op_awaiting(node);

		if (op->offer >= peer->line.ask)
			return op->offer < peer->line.begun ? op : NULL;
	}
	return NULL;
}

static int send_question_locked(struct mrf_conn *conn, const struct mrf_frame_ask *ask)
{
	uint8_t buf[MRF_FRAME_ASK_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };

	sge.len = (uint32_t)mrf_frame_ask_encode(ask, buf);
	return mrf_conn_send_locked(conn, &wr);
}

/* False: it cannot be asked now. */
static bool ask_locked(struct mrf_peer *peer)
{
	const struct mrf_op *op = next_to_ask_locked(peer);
	struct mrf_frame_ask ask = { .flags = op ? 0 : MRF_FRAME_LAST,
				     .number = op ? op->offer : peer->line.begun };

	/* The target can send nothing back for it before it knows this side's end of the pair. */
	if (op && !peer->conn->bulk) {
		mrf_bulk_want_locked(peer->conn);
		return false;
	}
	if (!mrf_conn_room_locked(peer->conn)) {
		mrf_conn_await_room_locked(peer);
		return false;
	}
	ask.bulk = mrf_bulk_name(peer->conn);
	if (send_question_locked(peer->conn, &ask)) {
		mrf_conn_break_locked(peer);
		return false;
	}
	if (ask.bulk.qp)
		peer->conn->bulk->named = true;
	/* As in post_offer_locked. */
	if (op)
		mrf_conn_probe_locked(peer->conn);
	peer->line.ask = ask.number;
	peer->line.asked = peer->line.asks = op;
	peer->line.gave_up &= peer->line.asks;
	return true;
}

void mrf_offer_ask_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	while (peer->state == MRF_PEER_READY && peer->line.asks && !peer->line.asked &&
	       ask_locked(peer))
		;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "contract/budget.h"
#include "ep/link/conn.h"
#include "ep/tx/note.h"
#include "ep/tx/peer_queue.h"
#include "proto/frame.h"

/* False: it says what cannot be. */
static bool take_note_locked(struct mrf_peer *peer, const uint8_t *buf, size_t len)
{
	struct mrf_outlet *line = &peer->line;
	struct mrf_frame_note note;
	uint64_t taken;

	if (mrf_frame_note_decode(buf, len, &note))
		return false;
	taken = mrf_frame_count(line->posted, note.taken, 32);
	/* A lie may be below 0, too. */
	if (taken < line->taken || taken > line->posted)
		return false;
	line->taken = taken;
	line->window = mrf_min(note.window, MRF_WINDOW_MAX);
	return true;
}

/* The note's slot is posted again before anything is sent for which another note may come. */
static void note_locked(struct mrf_conn *conn, unsigned slot, size_t len)
{
	struct mrf_peer *peer = conn->peer;
	bool good = slot < MRF_LINE_NOTES &&
		    take_note_locked(peer, conn->slots + slot * MRF_FRAME_MAX_BACK, len);

	if (!good)
		mrf_warn(FI_LOG_EP_DATA, 4021,
			 "a peer sent a malformed message of %zu byte%s: its connection is closed",
			 len, MRF_S(len));
	if (!good || mrf_conn_post_slot(conn, slot))
		mrf_conn_break_locked(peer);
	else
		mrf_peer_advance_locked(peer);
}

void mrf_note_heard_locked(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	struct mrf_conn *conn = mrf_idmap_find(&ep->conns, wc->wr_id >> MRF_WR_SLOT_BITS);

	mrf_lock_held(&ep->lock);
	/* Of one that is gone, or while it is being made: rdma_cm tells. */
	if (!conn || mrf_peer_dials(conn->peer->state))
		return;
	if (wc->status == MRF_WC_OK)
		note_locked(conn, wc->wr_id % (1u << MRF_WR_SLOT_BITS), wc->byte_len);
	else
		mrf_conn_break_locked(conn->peer);
}

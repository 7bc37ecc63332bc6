/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "base/log.h"
#include "contract/budget.h"
#include "ep/link/conn.h"
#include "ep/tx/delivery.h"
#include "ep/tx/note.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/outlet.h"
#include "ep/tx/peer_queue.h"
#include "proto/frame.h"

/* False: that cannot be, or is older than what was said before. */
static bool take_count_locked(struct mrf_outlet *line, uint32_t low, unsigned bits)
{
	uint64_t taken = mrf_frame_count(line->posted, low, bits);

	/* A lie may be below 0, too. */
	if (taken < line->taken || taken > line->posted)
		return false;
	line->taken = taken;
	return true;
}

/* Messages that wait for the target's word may end. */
static void spread_word_locked(struct mrf_peer *peer)
{
	if (mrf_unlikely(!mrf_list_empty(&peer->undelivered)))
		mrf_delivery_told_locked(peer);
}

/* False: it says what cannot be. */
static bool take_note_locked(struct mrf_peer *peer, const uint8_t *buf, size_t len)
{
	struct mrf_frame_note note;

	if (mrf_frame_note_decode(buf, len, &note) ||
	    !take_count_locked(&peer->line, note.taken, MRF_FRAME_COUNT_BITS))
		return false;
	peer->line.window = mrf_min(note.window, MRF_WINDOW_MAX);
	mrf_outlet_offers_only_locked(peer, note.flags & MRF_FRAME_OFFERS_ONLY);
	spread_word_locked(peer);
	return true;
}

void mrf_note_told_locked(struct mrf_peer *peer, uint32_t taken, unsigned bits)
{
	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(peer->state != MRF_PEER_READY) ||
	    !take_count_locked(&peer->line, taken, bits))
		return;
	spread_word_locked(peer);
	if (mrf_unlikely(!mrf_list_empty(&peer->queue)))
		mrf_peer_advance_locked(peer);
}

/*
 * What a line that has broken brings of offers has no use any more: the target says it again. False:
 * it says what cannot be.
 */
static bool take_grant_locked(struct mrf_conn *conn, const uint8_t *buf, size_t len)
{
	struct mrf_frame_grant grant;

	if (mrf_frame_grant_decode(buf, len, &grant))
		return false;
	return conn->peer->state != MRF_PEER_READY || mrf_offer_granted_locked(conn, &grant);
}

static bool take_back_frame_locked(struct mrf_conn *conn, const uint8_t *buf, size_t len)
{
	int type = mrf_frame_type(buf, len);

	if (type < 0)
		return false;
	switch ((enum mrf_frame_type)type) {
	case MRF_FRAME_NOTE:
		return take_note_locked(conn->peer, buf, len);
	case MRF_FRAME_GRANT:
		return take_grant_locked(conn, buf, len);
	case MRF_FRAME_MESSAGE: /* what an initiator says */
	case MRF_FRAME_OFFER:
	case MRF_FRAME_ASK:
	case MRF_FRAME_PROBE:
		break;
	}
	return false;
}

/* The slot is posted again before anything is sent for which something else may come. */
static bool is_right_locked(struct mrf_conn *conn, unsigned slot, size_t len)
{
	uint8_t buf[MRF_FRAME_MAX_BACK];

	mrf_lock_held(&conn->peer->ep->lock);
	if (slot < MRF_LINE_BACKS && len <= sizeof(buf)) {
		memcpy(buf, conn->slots + slot * MRF_FRAME_MAX_BACK, len);
		if (mrf_conn_post_slot(conn, slot))
			return false;
		if (take_back_frame_locked(conn, buf, len))
			return true;
	}
	mrf_warn(FI_LOG_EP_DATA, 4021,
		 "a peer sent a malformed message of %zu byte%s: its connection is closed", len,
		 MRF_S(len));
	return false;
}

void mrf_note_heard_locked(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	struct mrf_conn *conn = mrf_idmap_find(&ep->conns, wc->wr_id >> MRF_WR_SLOT_BITS);

	mrf_lock_held(&ep->lock);
	/* Of one that is gone. */
	if (!conn)
		return;
	if (wc->status == MRF_WC_OK &&
	    is_right_locked(conn, wc->wr_id % (1u << MRF_WR_SLOT_BITS), wc->byte_len))
		mrf_peer_advance_locked(conn->peer);
	/* While it is being made, rdma_cm tells; and a note may come before this side is ready. */
	else if (!mrf_peer_dials(conn->peer->state))
		mrf_conn_break_locked(conn->peer);
}

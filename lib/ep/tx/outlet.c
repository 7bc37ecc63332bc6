/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/budget.h"
#include "ep/link/conn.h"
#include "ep/msg/reverse.h"
#include "ep/tx/outlet.h"
#include "proto/frame.h"

void mrf_outlet_begins_locked(struct mrf_peer *peer, const struct mrf_welcome_line *line)
{
	mrf_lock_held(&peer->ep->lock);
	peer->line = (struct mrf_outlet){ .posted = line->taken,
					  .taken = line->taken,
					  .window = mrf_min(line->window, MRF_WINDOW_MAX),
					  .slot = line->slot,
					  .kinds = line->kinds,
					  .reverse = peer->line.reverse,
					  .offers = peer->line.offers,
					  .gave_up = peer->line.gave_up,
					  .begun = line->taken };
	mrf_outlet_offers_only_locked(peer, false);
	mrf_reverse_find_inlet_locked(peer);
}

void mrf_outlet_offers_only_locked(struct mrf_peer *peer, bool only)
{
	uint32_t most = mrf_min(peer->line.slot - MRF_FRAME_MESSAGE_MAX, (uint32_t)MRF_LINE_DATA);

	mrf_lock_held(&peer->ep->lock);
	peer->line.eager = only ? mrf_min(most, MRF_SEND_FEW) : most;
}

bool mrf_outlet_lets_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (mrf_outlet_is_open(&peer->line))
		return true;
	mrf_conn_probe_locked(peer->conn);
	return false;
}

bool mrf_outlet_waits_locked(const struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	return !mrf_list_empty(&peer->undelivered) || !mrf_list_empty(&peer->offered) ||
	       (mrf_peer_has_ops(peer) && !mrf_outlet_is_open(&peer->line));
}

void mrf_outlet_probe_locked(struct mrf_conn *conn)
{
	uint8_t buf[MRF_FRAME_PROBE_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };

	mrf_lock_held(&conn->peer->ep->lock);
	sge.len = (uint32_t)mrf_frame_probe_encode(buf);
	mrf_conn_send_locked(conn, &wr);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines at their initiator; ep->lock held. */
#ifndef MRF_EP_TX_OUTLET_H
#define MRF_EP_TX_OUTLET_H

#include "ep/model/peer.h"

/*
 * May the next message of this peer be posted? If not, a note will say when, and the peer is
 * probed meanwhile.
 */
bool mrf_outlet_lets_locked(struct mrf_peer *peer);
/* The target has welcomed a new line, and what was in doubt is settled. */
void mrf_outlet_begins_locked(struct mrf_peer *peer, const struct mrf_welcome_line *line);
/* Does a message of this peer wait for the target? */
bool mrf_outlet_waits_locked(const struct mrf_peer *peer);
/* Asks the peer's machine whether it is there. There is room on the connection. */
void mrf_outlet_probe_locked(struct mrf_conn *conn);

/* Only few bytes go with a frame from now on; or as many as fit. */
void mrf_outlet_offers_only_locked(struct mrf_peer *peer, bool only);

/*
 * Messages that wait until the target has taken others: it says so, and no completion does. But a
 * completion may be all that the first of the queue, fenced or a mark, has waited for.
 */
static inline bool mrf_outlet_holds_first(const struct mrf_peer *peer)
{
	const struct mrf_op *first = mrf_list_entry(peer->queue.next, struct mrf_op, node);

	return peer->kind == MRF_CONN_LINE && !mrf_outlet_is_open(&peer->line) && !first->fence;
}

#endif

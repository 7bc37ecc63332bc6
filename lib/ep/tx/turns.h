/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many connections are being made to one host at a time. A target lets in a limited
 * number of unconfirmed connections from one host (MRF_HALF_PER_ADDR), and answers
 * requests one after the other; an agent that asks for hundreds at once waits longer than
 * FI_MRFAB_CONN_TIMEOUT for the last answers. So an agent dials MRF_TURNS peers of a host
 * at a time, and each other peer there waits for its turn, in the order of their first
 * operations. A host that answers nobody keeps nobody waiting: after MRF_TURN_SILENT_MS
 * every peer there has its turn.
 *
 * Agent thread, which alone uses struct mrf_dialling.turns, turn and waits_since; the peer's
 * ep->lock may be held. Other peers of the agent are changed, too, but their connections
 * are not. What a call costs does not depend on how many peers wait.
 */
#ifndef MRF_EP_TX_TURNS_H
#define MRF_EP_TX_TURNS_H

#include "ep/model/peer.h"

/*
 * Is it the peer's turn to be dialled? If not, it is kicked when it is. A peer keeps its
 * turn until mrf_turn_end. Without memory it is always its turn.
 */
bool mrf_turn_take(struct mrf_peer *peer);
/* The peer's host has answered something: peers that wait for a turn there go on waiting. */
void mrf_turn_heard(const struct mrf_peer *peer);
/*
 * The peer neither has a turn nor waits for one any more. Those that wait for one at the
 * same host have theirs, as many as there may be. Does nothing the second time.
 */
void mrf_turn_end(struct mrf_peer *peer);

#endif

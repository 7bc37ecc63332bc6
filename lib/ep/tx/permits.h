/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many connections are being made to one host at a time. A target lets in a limited
 * number of unconfirmed connections from one host (MRF_HALF_PER_ADDR), and answers
 * requests one after the other; an agent that asks for hundreds at once waits longer than
 * FI_MRFAB_CONN_TIMEOUT for the last answers. So an agent dials MRF_PERMITS peers of a host
 * at a time, and each other peer there waits for a permit, in the order of their first
 * operations. A host that answers nobody keeps nobody waiting: after MRF_PERMIT_SILENT_MS
 * every peer there gets one.
 *
 * Agent thread, which alone uses struct mrf_dialling.permits, waits and waits_since; the peer's
 * ep->lock may be held. Other peers of the agent are changed, too, but their connections
 * are not. What a call costs does not depend on how many peers wait.
 */
#ifndef MRF_EP_TX_PERMITS_H
#define MRF_EP_TX_PERMITS_H

#include "ep/model/peer.h"

/*
 * May the peer be dialled? If not, it is kicked when it may. A peer keeps its permit until
 * mrf_permit_end. Without memory each has one.
 */
bool mrf_permit_take(struct mrf_peer *peer);
/* The peer's host has answered something: peers that wait for a permit there go on waiting. */
void mrf_permit_heard(const struct mrf_peer *peer);
/*
 * The peer neither has a permit nor waits for one any more. Those that wait at the
 * same host get theirs, as many as there may be. Does nothing the second time.
 */
void mrf_permit_end(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's half of an initiator's connections: what their states ask for, and what comes in.
 * Agent thread, ep->lock held.
 */
#ifndef MRF_EP_SERVICE_H
#define MRF_EP_SERVICE_H

#include "ep/peer.h"

/* Does what the state asks for: connects, takes down, frees. peer may be gone afterwards. */
void mrf_conn_service(struct mrf_peer *peer);
/* The endpoint closes: no completions any more, all is given back. Frees the peer. */
void mrf_peer_abandon(struct mrf_peer *peer);

#endif

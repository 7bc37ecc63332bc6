/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent does for active connections: it does what their states require and handles
 * what arrives on them. Agent thread, ep->lock held.
 */
#ifndef MRF_EP_TX_SERVICE_H
#define MRF_EP_TX_SERVICE_H

#include "ep/model/peer.h"
#include "ep/tx/chores.h"

/*
 * Does what the state requires: connects, takes down, frees. peer may be gone afterwards.
 */
void mrf_service_conn_locked(struct mrf_peer *peer);
/* The same for a peer whose kick it is (loop/agent.h); takes ep->lock itself. */
void mrf_service_kicked(struct mrf_kick *kick);
/*
 * Releases ep->lock at the end of a call to the agent's guest, or to an owner, that may have
 * changed connections: as mrf_chores_unlock.
 */
static inline void mrf_service_leave(struct mrf_ep *ep)
{
	mrf_peers_check_locked(ep);
	mrf_chores_unlock(ep);
}

/*
 * The endpoint closes: releases everything without writing completions, and frees the
 * peer. False: a job is still at it.
 */
bool mrf_service_abandon_locked(struct mrf_peer *peer);

#endif

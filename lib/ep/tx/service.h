/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's part in active connections: it does what their states require and handles
 * what arrives on them. Agent thread, ep->lock held.
 */
#ifndef MRF_EP_TX_SERVICE_H
#define MRF_EP_TX_SERVICE_H

#include "ep/model/peer.h"

/*
 * Does what the state requires: connects, takes down, frees. peer may be gone afterwards.
 */
void mrf_conn_service_locked(struct mrf_peer *peer);
/*
 * The endpoint closes: releases everything without writing completions, and frees the
 * peer.
 */
void mrf_peer_abandon_locked(struct mrf_peer *peer);

#endif

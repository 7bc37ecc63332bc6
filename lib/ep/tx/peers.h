/* SPDX-License-Identifier: BSD-2-Clause */
/* The peers of an endpoint: found, made, freed; ep->lock held, once others know the endpoint. */
#ifndef MRF_EP_TX_PEERS_H
#define MRF_EP_TX_PEERS_H

#include "ep/model/peer.h"

/* Of an endpoint that is being opened. */
void mrf_peers_init(struct mrf_ep *ep);
/* Of one that is being freed, and has no peer any more. */
void mrf_peers_fini(struct mrf_ep *ep);
/* Finds or makes the peer with this address for this kind of connection. -FI_EADDRNOTAVAIL, -FI_ENOMEM. */
int mrf_peers_get_locked(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t fi_addr,
			 struct mrf_peer **peer);
/* Logs that the endpoint's address vector does not have this address: -FI_EADDRNOTAVAIL. */
int mrf_peers_unknown(fi_addr_t fi_addr);
/* Without memory of mrf_lift (tx/lift.h), which the caller has freed. */
void mrf_peers_free_locked(struct mrf_peer *peer);
/*
 * Was the peer's address removed? If so, marks the peer gone, so that the address does
 * not lead to it any more.
 */
bool mrf_peers_let_go_locked(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are held, so that those of an application which has completions to read go together. */
#ifndef MRF_EP_TX_HELD_H
#define MRF_EP_TX_HELD_H

#include "ep/model/peer.h"

/*
 * The requests that have gathered for peer could be sent. True: they are in ep->held from now on, and
 * will be when the application has read its completions, or after MRF_LEASE_MS. ep->lock is held.
 */
bool mrf_held_begin_locked(struct mrf_peer *peer);

/* Of a new peer. */
void mrf_held_init(struct mrf_peer *peer);
/* The peer is about to be freed. Agent thread; ep->lock is held. */
void mrf_held_fini_locked(struct mrf_peer *peer);

#endif

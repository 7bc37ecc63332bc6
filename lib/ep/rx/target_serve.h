/* SPDX-License-Identifier: BSD-2-Clause */
/* Serving the questions and requests of peers. Agent thread, no lock held. */
#ifndef MRF_EP_RX_TARGET_SERVE_H
#define MRF_EP_RX_TARGET_SERVE_H

#include "ep/link/passive.h"

/* Calls to the owner, which is a passive connection: mrf_owner_calls. */
void mrf_passive_message(struct mrf_owner *owner, unsigned slot, const struct mrf_wc *wc);
/* mrf_passive.look has fired. */
void mrf_passive_look(struct mrf_timer *timer);
/* Tells the peer that what it knows about regions pinned on demand is no longer valid. */
void mrf_passive_forget(struct mrf_owner *owner);
/*
 * Serves peers, one question or request of each in turn, for a limited time or until a
 * command comes. True: some are left.
 */
bool mrf_target_serve(struct mrf_agent *agent);

#endif

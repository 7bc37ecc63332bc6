/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's half: connections that peers open, or lose. Agent thread, no lock held. */
#ifndef MRF_EP_RX_TARGET_H
#define MRF_EP_RX_TARGET_H

#include "ep/link/passive.h"

void mrf_passive_request(struct mrf_ep *ep, const struct mrf_cm_event *event);
/* Handles what has arrived, and destroys a connection of the endpoint. False: there was none. */
bool mrf_passive_destroy_one(struct mrf_ep *ep);
/*
 * Destroys the disconnected connections, as many as there is time for. Everything that was polled
 * must have been handled.
 */
void mrf_passive_destroy_disconnected(struct mrf_eps *eps);

#endif

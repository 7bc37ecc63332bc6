/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines that nobody uses. An endpoint that sends to many peers would keep a queue pair for each of
 * them, at both ends, for ever. So from MRF_LINES_KEPT lines on, one over which no message has gone for
 * MRF_IDLE_MS is closed, the one that has been idle longest first. The next message to its peer makes
 * another one; the target counts frames, and goes on counting. Messages cost no look at the clock: the
 * agent looks now and then which lines have posted something since. Agent thread.
 */
#ifndef MRF_EP_TX_IDLE_H
#define MRF_EP_TX_IDLE_H

#include "ep/model/peer.h"

void mrf_idle_init(struct mrf_ep *ep);
/* A line of this peer is ready. ep->lock is held. */
void mrf_idle_begins_locked(struct mrf_peer *peer);
/*
 * Closes the line that has been idle longest, if that is due at this time (ms). Returns how long until
 * the next look, in ms; -1: there are few lines. ep->lock is held.
 */
int64_t mrf_idle_look_locked(struct mrf_ep *ep, int64_t now);
/* The endpoint closes. */
void mrf_idle_end(struct mrf_ep *ep);

#endif

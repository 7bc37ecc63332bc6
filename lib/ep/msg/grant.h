/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a target says of offers goes over the line, in few work requests at a time: first the answer to
 * the initiator's question, then the offers that are over (inlet->ends), then parts of messages that it
 * asks for (calls->grant, which is intake.h).
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_GRANT_H
#define MRF_EP_MSG_GRANT_H

#include "ep/msg/inbox.h"

/* Tells the initiator what is due, as far as there is room. */
void mrf_grant_go_locked(struct mrf_inlet *inlet);
/* Sends one. False: the line is closed, because nothing can be sent over it. */
bool mrf_grant_send_locked(struct mrf_inlet *inlet, const struct mrf_frame_grant *grant);
/* One has been sent. */
void mrf_grant_sent_locked(struct mrf_inlet *inlet, const struct mrf_wc *wc);

#endif

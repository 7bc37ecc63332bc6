/* SPDX-License-Identifier: BSD-2-Clause */
/* The inbox and the ends of lines are made and freed. */
#ifndef MRF_EP_MSG_LINES_H
#define MRF_EP_MSG_LINES_H

#include "ep/msg/inbox.h"
#include "proto/greeting.h"

/*
 * For an endpoint that is being opened with FI_MSG. -FI_ENOMEM, -FI_EIO: no random numbers.
 */
int mrf_inbox_new(struct mrf_ep *ep, const struct mrf_inbox_calls *calls);
/* The agent has let go of the endpoint. What is posted or unexpected is dropped. Harmless for NULL. */
void mrf_inbox_free(struct mrf_inbox *inbox);

/* --- the agent, no lock held ---------------------------------------------------------- */

/*
 * Takes n places for a line in the queue, which is opened if there is none. Returns the device's
 * errors; -FI_ENOSPC: there are too many lines.
 */
int mrf_inbox_take_places(struct mrf_inbox *inbox, unsigned n);

/*
 * Makes the end of a line that asks for a connection: its queue pair, and what all lines need if
 * it is the first. Returns the device's errors, -FI_ENOMEM or -FI_ENOSPC; *full is the limit that
 * was met.
 */
int mrf_inlet_open(struct mrf_inbox *inbox, struct mrf_vconn *vconn, const struct mrf_hello *hello,
		   enum mrf_full *full, struct mrf_inlet **inlet);
/* Was the last line of this ticket cut off a moment ago? Then there is no other one yet. */
bool mrf_inbox_bars(struct mrf_inbox *inbox, uint64_t ticket);
/* Says in the welcome what its initiator has to know. */
void mrf_inlet_welcome(const struct mrf_inlet *inlet, struct mrf_welcome *welcome);
/* Its connection is accepted: notes may be sent over it. */
void mrf_inlet_begin(struct mrf_inlet *inlet, struct mrf_vconn *vconn);
/* Nothing is sent over it any more: its connection may be closed. */
void mrf_inlet_shut(struct mrf_inlet *inlet);
/* Its connection is closed: what has come over it is taken in. Frees it. */
void mrf_inlet_end(struct mrf_inlet *inlet);
/* Its connection is confirmed, or something has come over it. */
void mrf_inlet_confirmed(struct mrf_inlet *inlet);
/* Has anything come over it? */
bool mrf_inlet_heard(struct mrf_inlet *inlet);

#endif

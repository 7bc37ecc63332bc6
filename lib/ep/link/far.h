/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's end of the pair (verbs/vpair.h) over which the bytes of a peer's device memory go. A
 * connection has none until such bytes wait for it; then the agent makes one, and connects it when the
 * target has told the name of its own. It goes with the connection. Long messages have one of their
 * own, over their line: link/bulk.h.
 *
 * With ep->lock held. Calls marked * are the agent's, and leave the lock meanwhile; the connection
 * stays.
 */
#ifndef MRF_EP_LINK_FAR_H
#define MRF_EP_LINK_FAR_H

#include "ep/model/peer.h"

/* The agent shall make it. */
void mrf_far_want_locked(struct mrf_conn *conn);
/* * Makes it, for a connection that is READY. Returns the device's errors or -FI_ENOMEM. */
int mrf_far_open_locked(struct mrf_conn *conn);
/* * Connects it to the other end. Returns the device's errors, or -FI_ECONNRESET. */
int mrf_far_connect_locked(struct mrf_conn *conn);
/* * From then on nothing goes over it. What was posted is left to the caller. Harmless without. */
void mrf_far_shut_locked(struct mrf_conn *conn);
/* Shut, and nothing is posted any more. */
void mrf_far_free_locked(struct mrf_conn *conn);
/* * Both. Before the connection is destroyed. */
void mrf_far_end_locked(struct mrf_conn *conn);

/* SENDs and receives that are posted. */
static inline unsigned mrf_far_in_flight(const struct mrf_far *far)
{
	return far->tail - far->head + far->last - far->first;
}

/* Does nothing go over the connection's pair? */
static inline bool mrf_far_is_idle(const struct mrf_conn *conn)
{
	return !conn->far || !mrf_far_in_flight(conn->far);
}

#endif

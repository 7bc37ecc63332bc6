/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's end of the pair (verbs/vpair.h) over which the bytes of long messages go. A line has
 * none until the first long message waits for it; then the agent makes one, and connects it when the
 * target has told the name of its own. It goes with the line.
 *
 * With ep->lock held. Calls marked * are the agent's, and leave the lock meanwhile; the line stays.
 */
#ifndef MRF_EP_LINK_BULK_H
#define MRF_EP_LINK_BULK_H

#include "ep/model/peer.h"
#include "proto/frame.h"

/* The agent shall make it. */
void mrf_bulk_want_locked(struct mrf_conn *conn);
/* * Makes it, for a line that is READY. Returns the device's errors, -FI_ENOMEM or -FI_ENOSPC. */
int mrf_bulk_open_locked(struct mrf_conn *conn);
/* * Connects it to the other end. Returns the device's errors, or -FI_ECONNRESET. */
int mrf_bulk_connect_locked(struct mrf_conn *conn);
/* * From then on nothing is sent. What was posted is left to the caller. Harmless without. */
void mrf_bulk_shut_locked(struct mrf_conn *conn);
/* Shut, and nothing is posted any more. */
void mrf_bulk_free_locked(struct mrf_conn *conn);
/* * Both. Before the connection is destroyed. */
void mrf_bulk_end_locked(struct mrf_conn *conn);
/* What a frame says of it: nothing if the target knows already. */
struct mrf_frame_bulk mrf_bulk_name(const struct mrf_conn *conn);

/* Parts that are posted. */
static inline unsigned mrf_bulk_in_flight(const struct mrf_bulk *bulk)
{
	return bulk->tail - bulk->head;
}

/* Is no part of a long message on its way over the connection's pair? */
static inline bool mrf_bulk_is_idle(const struct mrf_conn *conn)
{
	return !conn->bulk || !mrf_bulk_in_flight(conn->bulk);
}

#endif

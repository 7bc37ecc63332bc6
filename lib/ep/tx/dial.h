/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a connection to a peer: IDLE to READY. Agent thread, ep->lock held. */
#ifndef MRF_EP_TX_DIAL_H
#define MRF_EP_TX_DIAL_H

#include "ep/link/conn.h"

/* IDLE -> LOOKING. If that fails, so does whatever waits for the connection. */
void mrf_dial_locked(struct mrf_peer *peer, const struct mrf_conn_calls *calls);
/*
 * Handles an rdma_cm event that counts in the state of a connection that is being made
 * (mrf_peer_hears). The connection may be gone afterwards. True: it is gone, and the caller has
 * to dial again.
 */
bool mrf_dial_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event);
/*
 * The connection's deadline has passed: gives up and returns false, or returns true if
 * the connection is gone and the caller has to dial again.
 */
bool mrf_dial_expired_locked(struct mrf_conn *conn);
/* Ends the attempt to connect: the next one begins anew, with all its time. */
void mrf_dial_forget_locked(struct mrf_peer *peer);
/* The connection was lost before it was established. It is gone afterwards. */
void mrf_dial_lost_locked(struct mrf_conn *conn);

#endif

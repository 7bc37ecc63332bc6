/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a connection to a peer: IDLE to READY. Agent thread, ep->lock held. */
#ifndef MRF_EP_DIAL_H
#define MRF_EP_DIAL_H

#include "ep/conn.h"

/* IDLE -> CONNECTING. */
void mrf_conn_dial(struct mrf_peer *peer, const struct mrf_conn_calls *calls);
/*
 * What rdma_cm says of a connection that is being made. The connection may be gone afterwards. True:
 * it is, and is to be dialled again.
 */
bool mrf_dial_event(struct mrf_conn *conn, const struct mrf_cm_event *event);
/* Its deadline is over: gives up, or likewise, true. */
bool mrf_dial_expired(struct mrf_conn *conn);
/* It was lost before it was made. The connection is gone afterwards. */
void mrf_dial_lost(struct mrf_conn *conn);

#endif

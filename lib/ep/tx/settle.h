/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of operations in doubt (doubt.h) when the peer is connected again. */
#ifndef MRF_EP_TX_SETTLE_H
#define MRF_EP_TX_SETTLE_H

#include "ep/model/peer.h"

/*
 * The peer has welcomed conn, a new connection: completes what it has done, has the rest done,
 * and fails what nobody knows. Agent thread, ep->lock held.
 */
void mrf_settle_locked(struct mrf_conn *conn);

#endif

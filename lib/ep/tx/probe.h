/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks whether a peer from which something is awaited is still there. Agent thread,
 * ep->lock held.
 */
#ifndef MRF_EP_TX_PROBE_H
#define MRF_EP_TX_PROBE_H

#include "ep/link/conn.h"

/* Sets the deadline of a connection that mrf_conn_probe_locked marked, unless it has one. */
void mrf_probe_begin_locked(struct mrf_peer *peer);
/*
 * The deadline of a working connection has passed: while something is awaited, posts a
 * write of no bytes, which no kernel refuses and which only the peer's kernel answers.
 */
void mrf_probe_locked(struct mrf_conn *conn);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a peer still there that something is awaited of? Agent thread, ep->lock held. */
#ifndef MRF_EP_PROBE_H
#define MRF_EP_PROBE_H

#include "ep/conn.h"

/* A connection that mrf_conn_probe asked to watch gets its deadline, unless it has one. */
void mrf_probe_begin(struct mrf_peer *peer);
/*
 * The deadline of a connection that works is over: while something is owed, posts a write of no
 * bytes, which no kernel refuses, and which none answers but the peer's.
 */
void mrf_probe(struct mrf_conn *conn);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: handling failures; ep->lock held. */
#ifndef MRF_EP_TX_FAIL_H
#define MRF_EP_TX_FAIL_H

#include "ep/model/peer.h"

/*
 * A work request of op (NULL: a message) came back in error: decides what becomes of op and of
 * conn, by the table of ep/model/fate.h. Returns where the work request stood.
 */
enum mrf_place mrf_fail_conn_locked(struct mrf_conn *conn, struct mrf_op *op,
				    const struct mrf_wc *wc);
/*
 * The target refused op: asks why, and tries again from the first byte that is not done.
 */
void mrf_fail_refused_locked(struct mrf_peer *peer, struct mrf_op *op);
/*
 * The device rejected the next work request of op with ret (-FI_E*): op fails. No reply
 * to op is awaited any more.
 */
void mrf_fail_post_locked(struct mrf_peer *peer, struct mrf_op *op, int ret);
#define MRF_NOT_TAKEN "the device rejected the work request"

/*
 * What becomes of op, of which a work request stood at that place on a connection that this
 * broke. kind: what the operation counts as; asks: as mrf_fate. Counts its tries: a broken
 * connection is one, however many work requests of op were in flight on it.
 */
struct mrf_fate mrf_fail_fate_locked(struct mrf_op *op, enum mrf_wc_status cause,
				     enum mrf_place place, enum mrf_op_kind kind, bool asks);

/* Everything that waits fails now, and everything in flight once it has come back. */
void mrf_fail_peer_locked(struct mrf_peer *peer, int err, int code, const char *text);
/* As mrf_fail_peer_locked, with a text that begins with the peer's address. */
void mrf_fail_addr_locked(struct mrf_peer *peer, int err, int code, const char *why);
/*
 * As mrf_fail_peer_locked, because the connection was ended by mrf_conn_denied_locked or cannot be
 * made: denied.h.
 */
void mrf_fail_denied_locked(struct mrf_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: handling failures; ep->lock held. */
#ifndef MRF_EP_TX_FAIL_H
#define MRF_EP_TX_FAIL_H

#include "ep/model/peer.h"

/*
 * A work request of op (NULL: a message) came back in error: decides what becomes of op and of
 * conn, by the table of ep/model/fate.h. Returns where the work request stood.
 */
enum mrf_place mrf_conn_failed_locked(struct mrf_conn *conn, struct mrf_op *op,
				      const struct mrf_wc *wc);
/*
 * The target refused op: asks why, and tries again from the first byte that is not done.
 */
void mrf_peer_refused_locked(struct mrf_peer *peer, struct mrf_op *op);
/*
 * The device rejected the next work request of op with ret (-FI_E*): op fails. No reply
 * to op is awaited (any more).
 */
void mrf_peer_no_post_locked(struct mrf_peer *peer, struct mrf_op *op, int ret);
#define MRF_NOT_TAKEN "the device rejected the work request"

/* Everything that waits fails now, and everything in flight once it has come back. */
void mrf_peer_fail_locked(struct mrf_peer *peer, int err, int code, const char *text);
/* As mrf_peer_fail_locked, with a text that begins with the peer's address. */
void mrf_peer_fail_addr_locked(struct mrf_peer *peer, int err, int code, const char *why);
/*
 * As mrf_peer_fail_locked, because the connection was ended by mrf_conn_denied_locked or cannot be
 * made: denied.h.
 */
void mrf_peer_denied_locked(struct mrf_peer *peer);

#endif

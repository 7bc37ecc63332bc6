/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: handling failures; ep->lock held. */
#ifndef MRF_EP_TX_FAIL_H
#define MRF_EP_TX_FAIL_H

#include "ep/model/peer.h"

/*
 * A work request of op (NULL: a question) came back in error: decides what becomes of op
 * and of conn.
 */
void mrf_conn_failed_locked(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc);
/*
 * True if nothing that was posted behind the first failed work request has run. That
 * holds if the target refused that request, or if it was never sent, unless it had
 * already run once: after a lost acknowledgement the device sends everything again,
 * including requests that were carried out before, and those fail if a buffer or region
 * has been closed meanwhile or the link went down.
 */
bool mrf_conn_stopped_there_locked(const struct mrf_conn *conn);
/* op, in doubt (doubt.h) and in no list, fails: nobody knows whether it was done. */
void mrf_peer_doubt_locked(struct mrf_peer *peer, struct mrf_op *op);
/* Has the unacknowledged part of op posted again; nothing of op is in flight any more. */
void mrf_peer_again_locked(struct mrf_peer *peer, struct mrf_op *op);
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

/* Nothing of op is in flight any more, and op->fatal says how it ended. */
void mrf_peer_op_fatal_locked(struct mrf_peer *peer, struct mrf_op *op);

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: what follows a failure; ep->lock held. */
#ifndef MRF_EP_FAIL_H
#define MRF_EP_FAIL_H

#include "ep/peer.h"

/* A work request of op (NULL: a question) came back in error: what becomes of op, and of conn. */
void mrf_conn_failed(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc);
/*
 * Nothing that was posted behind the first failure has run. That is so when the target refused
 * it, or it was never sent, unless it had run before: when an acknowledgement is lost the
 * device sends all again, what was done already included, and a buffer or region that has
 * been closed meanwhile, or a link that went down, makes that fail.
 */
bool mrf_conn_stopped_there(const struct mrf_conn *conn);
/* What was not acknowledged is posted again; nothing of op is in flight any more. */
void mrf_peer_again(struct mrf_peer *peer, struct mrf_op *op);
/* The target said no to op: ask why, and try again from the first byte that is not done. */
void mrf_peer_refused(struct mrf_peer *peer, struct mrf_op *op);
/*
 * The device did not take what came next of op, for the reason ret (-FI_E*): it fails. No reply
 * to it is awaited (any more).
 */
void mrf_peer_no_post(struct mrf_peer *peer, struct mrf_op *op, int ret);
#define MRF_NOT_TAKEN "the device rejected the work request"

/* Nothing of op is in flight any more, and op->fatal says how it ended. */
void mrf_peer_op_fatal(struct mrf_peer *peer, struct mrf_op *op);

/* Everything that waits fails; what is in flight does once it has come back. */
void mrf_peer_fail(struct mrf_peer *peer, int err, int code, const char *text);
/* The same, for a reason that begins with the peer's address. */
void mrf_peer_fail_addr(struct mrf_peer *peer, int err, int code, const char *why);
/* The same, because the connection was ended by mrf_conn_denied or cannot be made: denied.h. */
void mrf_peer_denied(struct mrf_peer *peer);

#endif

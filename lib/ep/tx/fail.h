/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's data path: failures; ep->lock held.
 *
 * Operations that may or may not have been done when their connection broke, and whose target
 * knows (MRF_ASK, ep/model/fate.h). An operation in doubt waits in the peer's queue. The next
 * hello names the target's queue pair, and the welcome says which packet that would have carried
 * out next; so each operation has been done, or is done now. A plain write that was done in part
 * is done again; anything else that was done in part fails, and so does an operation whose
 * results went with the connection. All of them fail if the target does not know, or no
 * connection comes about.
 */
#ifndef MRF_EP_TX_FAIL_H
#define MRF_EP_TX_FAIL_H

#include "ep/model/peer.h"

/*
 * A work request of op (NULL: a message) came back in error: decides what becomes of op, which may
 * end, and of conn, by the table of ep/model/fate.h. Returns where the work request stood.
 */
enum mrf_standing mrf_fail_conn_locked(struct mrf_conn *conn, struct mrf_op *op,
				       const struct mrf_wc *wc);
/*
 * The target refused op: asks why, and tries again from the first byte that is not done.
 */
void mrf_fail_refused_locked(struct mrf_peer *peer, struct mrf_op *op);
/* The device rejected the next work request of op with ret (-FI_E*): op fails. */
void mrf_fail_post_locked(struct mrf_op *op, int ret);
#define MRF_NOT_TAKEN "the device rejected the work request"

/*
 * What becomes of op, of which a work request stood at that place on a connection that this
 * broke. kind: what the operation counts as; asks: as mrf_fate. Counts its tries: a broken
 * connection is one, however many work requests of op were in flight on it.
 */
struct mrf_fate mrf_fail_fate_locked(struct mrf_op *op, enum mrf_wc_status cause,
				     enum mrf_standing stood, enum mrf_op_kind kind, bool asks);

/*
 * The peer has welcomed conn, a new connection: completes the operations in doubt that the target
 * has executed, has those done that it has not, and fails the others. Agent thread.
 */
void mrf_fail_settle_locked(struct mrf_conn *conn);
/*
 * A line is lost: completes the messages in doubt of which its target has said that they have come.
 */
void mrf_fail_settle_came_locked(struct mrf_peer *peer);

/* Everything that waits fails now, and everything in flight once it has come back. */
void mrf_fail_peer_locked(struct mrf_peer *peer, int err, int code, const char *text);
/* As mrf_fail_peer_locked, with a text that begins with the peer's address. */
void mrf_fail_addr_locked(struct mrf_peer *peer, int err, int code, const char *why);
/*
 * As mrf_fail_peer_locked, because the connection was ended by mrf_conn_denied_locked or cannot be
 * made: loop/agent.h.
 */
void mrf_fail_denied_locked(struct mrf_peer *peer);

#endif

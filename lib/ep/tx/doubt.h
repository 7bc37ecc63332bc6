/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that may or may not have been done when their connection broke, and whose target
 * knows (MRF_ASK, ep/model/fate.h). An operation in doubt waits in the peer's queue. The next
 * hello names the target's queue pair, and the welcome says which packet that would have carried
 * out next; so each operation has been done, or is done now. A plain write that was done in part
 * is done again; anything else that was done in part fails, and so does an operation whose
 * results went with the connection. All of them fail if the target does not know, or no
 * connection comes about. ep->lock held.
 */
#ifndef MRF_EP_TX_DOUBT_H
#define MRF_EP_TX_DOUBT_H

#include "ep/model/peer.h"

/*
 * The connection's first failure is that of op's work request (NULL: a message), which is off
 * the ring: finds which packets it had. conn->cause is set.
 */
void mrf_doubt_begin_locked(struct mrf_conn *conn, const struct mrf_op *op);
/* A work request of len bytes has come back: the next one's packets follow its. */
void mrf_doubt_next_locked(struct mrf_conn *conn, uint64_t len);
/*
 * Nobody here knows whether the work request of op, a write or an atomic operation, that has just
 * come back was done: op is in doubt now. conn->asks is set.
 * status: what is said of op if the target does not know it, either; neither OK nor LOCAL.
 */
void mrf_doubt_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_wc_status status);
/*
 * The peer has welcomed conn, a new connection: completes the operations in doubt that the target
 * has executed, has those done that it has not, and fails the others. Agent thread.
 */
void mrf_doubt_settle_locked(struct mrf_conn *conn);

#endif

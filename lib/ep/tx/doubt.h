/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that may or may not have been done when their connection broke, and whose target
 * knows. An operation in doubt waits in the peer's queue (settle.h). The next hello names the target's queue
 * pair, and the welcome says which packet it would have carried out next; so each operation has
 * been done, or is done now, and none is done twice. One whose results went with the connection
 * fails, and so do all of them if the target does not know, or no connection comes about.
 * ep->lock held.
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
 * Nobody here knows whether the work request of op that has just come back was done. True: op is
 * in doubt now. False: the target need not be asked, or cannot be; op fails.
 * status: what is said of op if the target does not know it, either; neither OK nor LOCAL.
 */
bool mrf_doubt_locked(struct mrf_conn *conn, struct mrf_op *op, enum mrf_wc_status status);

#endif

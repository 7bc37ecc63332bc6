/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/ep: what the files of a peer's data path do for each other; ep->lock held. */
#ifndef MRF_EP_PEER_INT_H
#define MRF_EP_PEER_INT_H

#include "ep/peer.h"

/* op is no longer in peer->queue or peer->redo. */
static inline void mrf_op_leave(struct mrf_op *op)
{
	mrf_list_del(&op->node);
	op->queued = false;
}

/* --- peer_fail ------------------------------------------------------------------------- */

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

/* --- conn: agent thread ----------------------------------------------------------------- */

/* The deadline of what the connection waits for is in so many ms. */
void mrf_conn_set_deadline(struct mrf_conn *conn, int64_t ms);

/* Room for an answer to each question, replies, and a note or two. */
#define MRF_CONN_SLOTS (MRF_ASKS + MRF_REQUESTS + 3)
#define MRF_CONN_SLOT_SIZE MRF_PROTO_MAX_REQUEST
int mrf_conn_post_slot(struct mrf_conn *conn, unsigned slot);
/* Its timer's. */
void mrf_conn_deadline(struct mrf_timer *timer);
/*
 * The peer's agent has not answered for too long: what waits for it fails. Answers may come
 * still; a reply that is given up may not, and ends the connection. READY.
 */
void mrf_conn_unanswered(struct mrf_conn *conn);
/* What waits for the peer fails, for a reason that begins with its address. */
void mrf_peer_fail_addr(struct mrf_peer *peer, int err, int code, const char *why);

/* --- dial: agent thread ----------------------------------------------------------------- */

/* IDLE -> CONNECTING. */
void mrf_conn_dial(struct mrf_peer *peer);
/* What rdma_cm says of a connection that is being made. The connection may be gone afterwards. */
void mrf_dial_event(struct mrf_conn *conn, const struct mrf_cm_event *event);
/* Its deadline is over: dials again, or gives up. Likewise. */
void mrf_dial_expired(struct mrf_conn *conn);
/* It was lost before it was made. Likewise. */
void mrf_dial_lost(struct mrf_conn *conn);

/* --- probe: agent thread ---------------------------------------------------------------- */

/* A connection that mrf_conn_probe asked to watch gets its deadline, unless it has one. */
void mrf_probe_begin(struct mrf_peer *peer);
/*
 * The deadline of a connection that works is over: while something is owed, posts a write of no
 * bytes, which no kernel refuses, and which none answers but the peer's.
 */
void mrf_probe(struct mrf_conn *conn);

#endif

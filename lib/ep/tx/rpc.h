/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote procedure calls: operations, or parts of them, that the peer's agent does
 * because RDMA has no opcode for them. A request is done when its reply has arrived, not
 * when it was delivered.
 *
 * One message is on the way per connection. Requests made meanwhile are gathered and go
 * out as the next message when all replies have arrived: many requests, one message, one
 * wake-up of the peer. Where their bytes go over a pair, two are, of few requests each, so that
 * those of the second arrive while the peer is at the first. Others are also gathered, though none
 * is on the way, while the application has completions to read: it starts further operations when
 * it has. They go when it has read them all, or after MRF_LEASE_MS.
 *
 * Each request has a number: the peer carries them out in this order, and none behind one that it
 * could not finish (docs/WIRE.md). Requests that were not
 * carried out are sent again. While a reply is awaited, the operation keeps its place in
 * its peer's queue, and nothing is posted that the peer's kernel may refuse. So the
 * connection breaks during that time only if the peer is gone, or for a buffer of our own:
 * the operations then fail, because nobody knows whether they were done. Requests that were
 * flushed behind a refused access have not been seen by the peer and are sent again. ep->lock
 * held throughout.
 */
#ifndef MRF_EP_TX_RPC_H
#define MRF_EP_TX_RPC_H

#include "ep/model/peer.h"
#include "ep/model/why.h"

/* A type of request, on the initiator's side. Constant. */
struct mrf_rpc {
	enum mrf_msg_type type;
	/*
	 * Fills in a request about the operation's bytes from pos on, of which the next
	 * len (> 0) are in one remote buffer (0: it has none): sets request's what and body_len, writes
	 * the body (room for MRF_PROTO_REQUEST_BODY), and returns how many of these bytes
	 * the request covers.
	 */
	uint64_t (*fill)(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			 uint8_t *body);
	/*
	 * reply->done bytes from op->acked on have been done; reads the reply's body.
	 * False: the body does not fit the request. NULL: replies have no body.
	 */
	bool (*take)(struct mrf_op *op, const struct mrf_reply *reply);
	/*
	 * The same for what a reply says to the connection, whatever has become of the operation. NULL:
	 * nothing.
	 */
	bool (*hear)(struct mrf_conn *conn, const struct mrf_awaited *awaited,
		     const struct mrf_reply *reply);
	/*
	 * The request's bytes go over a pair: posts them, just before the request is sent. (One that has
	 * a body has none.) An error: the pair cannot go on. NULL: there are none.
	 */
	int (*carry)(struct mrf_conn *conn, const struct mrf_awaited *awaited);
	bool comes;   /* so the bytes come, and op->acked goes on with them: not with the reply */
	bool repeats; /* may be done twice: sent again when the connection is lost (mrf_rpc_again) */
	bool patient; /* the peer's program may have to do something first, and is slow */
	/* Explains status FAILED, with this FI_E*. NULL: a general sentence is used. */
	void (*explain)(const struct mrf_op *op, int err, struct mrf_why *why);
};

/* It stays in its peer's queue, although all of it is posted: what it waits for may fail. */
static inline bool mrf_rpc_waits(const struct mrf_op *op)
{
	return op->awaiting || (op->inflight && op->type->rpc && op->type->rpc->carry);
}

/* Does op go by way of requests that may be done twice? */
static inline bool mrf_rpc_repeats(const struct mrf_op *op)
{
	return op->type->rpc && op->type->rpc->repeats;
}

/*
 * May it be done again, as a read, now that its connection has been lost? What the target counts or
 * tells its application may not.
 */
static inline bool mrf_rpc_again(const struct mrf_op *op)
{
	return mrf_rpc_repeats(op) && !op->told && !op->imm.posted;
}

static inline bool mrf_rpc_awaited_locked(const struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return conn->window.first != conn->window.last;
}

/* Is nothing but replies awaited that may take any time? */
bool mrf_rpc_is_patient_locked(const struct mrf_conn *conn);
/*
 * Do the requests that await replies allow anything of op to be posted? If not, a reply
 * will change that.
 */
bool mrf_rpc_lets_locked(const struct mrf_conn *conn, const struct mrf_op *op);
/*
 * Makes the request for the next part of op, the first operation in the queue that is not
 * wholly posted; mrf_rpc_lets_locked allows it. -FI_ENOKEY: its key has ceased to be known;
 * -FI_EAGAIN: the request does not fit into the gathered message any more.
 */
int mrf_rpc_post_locked(struct mrf_peer *peer, struct mrf_op *op);
/*
 * Sends the gathered requests if no reply is awaited, and if they are not held. False: sending failed, and another
 * operation may be first in the queue now.
 */
bool mrf_rpc_flush_locked(struct mrf_peer *peer);
/* How many requests of this type have been sent and have no reply, or wait to be sent. */
unsigned mrf_rpc_sent_locked(const struct mrf_conn *conn, const struct mrf_rpc *rpc);
unsigned mrf_rpc_gathered_locked(const struct mrf_conn *conn, const struct mrf_rpc *rpc);
/* The work request at this index of the ring, perhaps a message with requests, has failed. */
void mrf_rpc_unsent_locked(struct mrf_conn *conn, unsigned at, enum mrf_standing stood);
/*
 * A message with replies arrived, and everything posted before their requests has
 * completed: operations end, and others may go on. -FI_EINVAL: the replies do not match
 * the requests.
 */
int mrf_rpc_replied_locked(struct mrf_peer *peer, const uint8_t *msg, size_t len);
/*
 * What broke the connection, or the pair beside it; FLUSHED: the peer has gone without anything in
 * flight.
 */
enum mrf_wc_status mrf_rpc_cause(const struct mrf_conn *conn);
/*
 * The connection is about to be taken down: decides what becomes of requests without a
 * reply.
 */
void mrf_rpc_lost_locked(struct mrf_conn *conn);

#endif

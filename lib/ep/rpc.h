/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote procedure calls: operations, or parts of them, that the peer's agent does because RDMA
 * has no opcode for them. One is done when its reply has come, not when it was delivered.
 *
 * One message is on the way per connection. What is asked for meanwhile gathers, and goes out as the
 * next one when all replies are there: many requests, one message, one wake-up of the peer.
 * Each request has a turn: the peer does them in this order, and none behind one that it could not
 * do wholly (docs/WIRE.md). Those that were not done go out again. While a
 * reply is awaited the operation stays in its peer's queue, in its place, and nothing is
 * posted that the peer's kernel may refuse. So a connection breaks meanwhile only if the peer is
 * gone: then the operations fail, for nobody knows whether they were done. Requests that were
 * flushed behind a refused access have not been seen and go out again. All of it: ep->lock held.
 */
#ifndef MRF_EP_RPC_H
#define MRF_EP_RPC_H

#include "ep/peer.h"
#include "ep/why.h"
#include "proto/request.h"

/* What the initiator knows of a type of request. Constant. */
struct mrf_rpc {
	enum mrf_msg_type type;
	/*
	 * Says what is to be done with the operation's bytes from pos on, of which the next
	 * len (> 0) are in one remote buffer: sets request's what and body_len, writes the
	 * body (room for MRF_PROTO_REQUEST_BODY), and returns how many of them are meant.
	 */
	uint64_t (*fill)(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			 uint8_t *body);
	/*
	 * reply->done bytes from op->acked on have been done; takes in the body. False:
	 * that is not what was asked for. NULL: there is nothing to take in.
	 */
	bool (*take)(struct mrf_op *op, const struct mrf_reply *reply);
	/* Says why it FAILED, by reply->err. NULL: a sentence that fits all. */
	void (*explain)(const struct mrf_op *op, const struct mrf_reply *reply,
			struct mrf_why *why);
};

static inline bool mrf_rpc_awaited(const struct mrf_conn *conn)
{
	return conn->window.first != conn->window.last;
}

/*
 * May anything of op be posted, as far as requests without a reply are concerned? If not, a
 * reply changes that.
 */
bool mrf_rpc_lets(const struct mrf_conn *conn, const struct mrf_op *op);
/*
 * Makes the request about what comes next of op, which is the first in the queue that is not
 * wholly posted, and mrf_rpc_lets. -FI_ENOKEY: its key has ceased to be known; -FI_EAGAIN: it
 * does not go into the message any more.
 */
int mrf_rpc_post(struct mrf_peer *peer, struct mrf_op *op);
/* Sends what has gathered, if it is time. False: it failed, and others may come first now. */
bool mrf_rpc_flush(struct mrf_peer *peer);
/* op is about to fail: what comes back of its requests is of no interest. */
void mrf_rpc_disown(struct mrf_conn *conn, struct mrf_op *op);
/* The work request at this place of the ring, which was no access, has come back. */
void mrf_rpc_sent(struct mrf_conn *conn, unsigned at, const struct mrf_wc *wc);
/*
 * A message with replies came in, and all that was ahead of them has completed: operations end,
 * and others may go on. -FI_EINVAL: it has none to what was asked.
 */
int mrf_rpc_replied(struct mrf_peer *peer, const uint8_t *msg, size_t len);
/* The connection is about to be taken down: what becomes of messages that have no reply. */
void mrf_rpc_lost(struct mrf_conn *conn);

#endif

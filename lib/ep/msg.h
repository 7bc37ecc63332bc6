/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages: operations, or parts of them, that the peer's agent does because RDMA has no
 * opcode for them. A message is done when its reply has come, not when it was delivered.
 *
 * One request is on the way per connection, and while its reply is awaited the operation
 * stays first in its peer's queue and nothing is posted that the peer's kernel may refuse.
 * So a connection breaks meanwhile only if the peer is gone: then the operation fails, for
 * nobody knows whether it was done. A request that was flushed behind a refused access has
 * not been seen and goes out again. All of it: ep->lock held.
 */
#ifndef MRF_EP_MSG_H
#define MRF_EP_MSG_H

#include "ep/peer.h"
#include "proto/request.h"

/* What the initiator knows of a type of request. Constant. */
struct mrf_msg {
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

/*
 * Posts the request about what comes next of op, which is first in the queue. There is room.
 * -FI_ENOKEY: its key has ceased to be known; or the device's error.
 */
int mrf_msg_post(struct mrf_peer *peer, struct mrf_op *op);
/* The work request at this place of the ring, which was no access, has come back. */
void mrf_msg_sent(struct mrf_conn *conn, unsigned at, const struct mrf_wc *wc);
/* A reply came in. -FI_EINVAL: it is none to what was asked. */
int mrf_msg_replied(struct mrf_peer *peer, const struct mrf_reply *reply);
/* The connection is about to be taken down: what becomes of a message that has no reply. */
void mrf_msg_lost(struct mrf_conn *conn);

/*
 * The target's side: how requests are carried out, by type; NULL: not known here. Agent
 * thread, no lock held. reply comes with status DONE and nothing done; its body, of at most
 * MRF_PROTO_REPLY_BODY bytes, is to be written to body, and body_len set. Nonzero: the
 * request is malformed, and the connection ends. Tests add types of their own.
 */
#define MRF_REQUEST_TYPES 16

extern int (*mrf_request_serve[MRF_REQUEST_TYPES])(struct mrf_ep *ep,
						   const struct mrf_request *request,
						   struct mrf_reply *reply, uint8_t *body);

#endif

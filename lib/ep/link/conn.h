/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection that an endpoint of this process has opened, and what is posted on it;
 * ep->lock held. Only the agent talks to rdma_cm, so it makes connections (dial.h) and
 * takes them down (service.h).
 *
 * These calls of the kernel take time, and the lock is not held over them. Other threads
 * may queue operations for the peer meanwhile, cancel them and take in completions, but
 * they only move a connection from READY to BROKEN (conn_state.h), and only the agent frees
 * the peer and its connection. So outside READY nothing changes while the lock is released.
 */
#ifndef MRF_EP_LINK_CONN_H
#define MRF_EP_LINK_CONN_H

#include "ep/model/peer.h"
#include "loop/agent_calls.h"
#include "proto/frame.h"

/*
 * Room for an answer to each question, the messages with all replies, and a note or two.
 */
#define MRF_CONN_SLOTS (MRF_ASKS + 3 + MRF_STAGE_MESSAGES)
#define MRF_CONN_SLOT_SIZE MRF_PROTO_MAX_REPLY
/* Messages with requests: on the way, and the one that they gather in. */
#define MRF_CONN_OUTGOING (MRF_STAGE_MESSAGES + 1)
#define MRF_CONN_ROOM \
	(MRF_CONN_SLOTS * MRF_CONN_SLOT_SIZE + MRF_CONN_OUTGOING * MRF_PROTO_MAX_REQUEST)
/* Of a line: its receives, and behind them the heads of the frames that are on the way. */
#define MRF_LINE_ROOM (MRF_LINE_BACKS * MRF_FRAME_MAX_BACK + MRF_CONN_RING * MRF_FRAME_MESSAGE_MAX)

_Static_assert(MRF_PROTO_MAX_MSG <= MRF_CONN_SLOT_SIZE, "an answer fits");

/* The calls to the owner of a connection. Constant. */
struct mrf_conn_calls {
	struct mrf_owner_calls owner;
	void (*deadline)(struct mrf_timer *timer); /* mrf_conn.timer has fired */
	void (*leased)(struct mrf_timer *timer);   /* mrf_conn.lease_timer has fired */
};

/* --- agent thread ------------------------------------------------------------------- */

/* Leave ep->lock around a call that takes time, and take it again. */
static inline void mrf_conn_unlock(const struct mrf_conn *conn)
{
	mrf_lock_release(&conn->peer->ep->lock);
}

static inline void mrf_conn_lock(const struct mrf_conn *conn)
{
	mrf_lock_take(&conn->peer->ep->lock);
}

/*
 * Makes a connection that is not connected and has no queue pair yet. This call and those
 * marked * leave ep->lock meanwhile.
 */
int mrf_conn_new_locked(struct mrf_peer *peer, const struct mrf_conn_calls *calls,
			struct mrf_conn **out);
/* * Takes the connection down at once, which has no pair (any more). The peer is IDLE. */
void mrf_conn_destroy_locked(struct mrf_conn *conn);
int mrf_conn_post_slot(struct mrf_conn *conn, unsigned slot);
/* Sets the deadline for the event that the connection waits for, in ms from now. */
void mrf_conn_set_deadline_locked(struct mrf_conn *conn, int64_t ms);
/*
 * Agent thread. After MRF_LEASE_MS the agent sends what has gathered by then, and from then on a
 * lease is released as soon as it is unused.
 */
void mrf_conn_soon_locked(struct mrf_conn *conn);
/*
 * * READY, BROKEN or DRAINING -> CUT: the peer is gone or given up, and everything in flight
 * will come back. In CUT: does nothing.
 */
void mrf_conn_gone_locked(struct mrf_conn *conn);
/*
 * * Was this broken connection ended by mrf_conn_denied_locked? If so, and unless it is CUT, puts
 * its queue pair into error, which nothing else has done, so that everything in flight comes
 * back: CUT.
 */
bool mrf_conn_end_denied_locked(struct mrf_conn *conn);

/*
 * One attempt to connect to a peer, LOOKING to READY: the calls of rdma_cm and what answers them.
 * Each call returns how the attempt stands; whether there is another one, and when, is for the
 * caller to decide (tx/dial.h).
 */
enum mrf_attempt {
	MRF_ATTEMPT_GOES_ON,
	MRF_ATTEMPT_NOT_FOUND, /* no machine has answered for the address yet: look for it again */
	MRF_ATTEMPT_ASKED,     /* ASKING: the peer has been sent a request */
	MRF_ATTEMPT_REFUSED,   /* by an endpoint, which has said why in the event */
	MRF_ATTEMPT_NOBODY,    /* no endpoint listens at the address */
	MRF_ATTEMPT_WELCOMED,  /* accepted, and what the peer said of itself is in peer->target */
	MRF_ATTEMPT_LOST,      /* accepted, and dropped before it was made: why */
	MRF_ATTEMPT_FAILED     /* why */
};

/* FI_MRFAB_CONN_TIMEOUT, in ms. */
int mrf_conn_timeout(void);
/* Looks for the peer's address: GOES_ON or FAILED. */
enum mrf_attempt mrf_conn_resolve_locked(struct mrf_conn *conn, struct mrf_why *why);
/* An rdma_cm event that counts in the state of the connection (mrf_peer_hears). */
enum mrf_attempt mrf_conn_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
				       struct mrf_why *why);
/* The peer has welcomed us: READY and GOES_ON, or FAILED. */
enum mrf_attempt mrf_conn_establish_locked(struct mrf_conn *conn, struct mrf_why *why);
/* The peer went away meanwhile: FAILED. */
enum mrf_attempt mrf_conn_lost_locked(const struct mrf_peer *peer, struct mrf_why *why);

/* --- any thread --------------------------------------------------------------------- */

/*
 * READY -> BROKEN: once everything in flight has come back, the agent takes the
 * connection down. Does nothing if it is broken already.
 */
void mrf_conn_break_locked(struct mrf_peer *peer);
/*
 * The kernel refused a work request of this connection (loop/agent.h). The request counts as
 * posted anyway.
 */
void mrf_conn_denied_locked(struct mrf_conn *conn);
/* Something is awaited from the peer: has the agent watch whether the peer goes away. */
void mrf_conn_probe_locked(struct mrf_conn *conn);
/*
 * The peer found no room for a work request: it goes on when completions have made room,
 * its own or, if the endpoint's queue was full, those of other peers.
 */
void mrf_conn_await_room_locked(struct mrf_peer *peer);
/*
 * The peer's next step depends on completions: the agent waits for them, so that the
 * queue moves even if the application does not read its CQ.
 */
void mrf_conn_watch_locked(struct mrf_peer *peer);

/* The peer's connection needs the agent's attention. Never blocks or fails. */
static inline void mrf_conn_kick_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_agent_kick(peer->ep->agent, &peer->kick);
}

/* Behind the slots: the first of those that requests gather in. */
static inline uint8_t *mrf_conn_outgoing(const struct mrf_conn *conn)
{
	return conn->slots + MRF_CONN_SLOTS * MRF_CONN_SLOT_SIZE;
}

/* Of a line: where the head of the next frame is made. */
static inline uint8_t *mrf_conn_head(const struct mrf_conn *conn)
{
	return conn->slots + MRF_LINE_BACKS * MRF_FRAME_MAX_BACK +
	       conn->tail % MRF_CONN_RING * MRF_FRAME_MESSAGE_MAX;
}

/* How many of its work requests have not completed. */
static inline unsigned mrf_conn_in_flight_locked(const struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return conn->tail - conn->head;
}

/* Room for one more work request on the connection and in the CQ of its endpoint, ep. */
static inline bool mrf_conn_room_of_locked(const struct mrf_ep *ep, const struct mrf_conn *conn)
{
	mrf_lock_held(&ep->lock);
	return conn->tail - conn->head < MRF_CONN_RING - 1 && ep->scq_used < MRF_EP_SCQ;
}

static inline bool mrf_conn_room_locked(const struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return mrf_conn_room_of_locked(conn->peer->ep, conn);
}

/*
 * Records the work request of len bytes that was just posted on a connection of ep. With its
 * success `bytes` of op are done.
 */
static inline void mrf_conn_posted_of_locked(struct mrf_ep *ep, struct mrf_conn *conn,
					     struct mrf_op *op, uint32_t bytes, uint64_t len)
{
	struct mrf_posted *posted = &conn->ring[conn->tail++ % MRF_CONN_RING];

	mrf_lock_held(&ep->lock);
	posted->op = op;
	posted->bytes = bytes;
	posted->more = 0;
	if (mrf_unlikely(len > conn->mtu)) {
		posted->more = (uint32_t)((len - 1) / conn->mtu);
		conn->more += posted->more;
	}
	ep->scq_used++;
}

/*
 * Posts a work request and records it, as mrf_conn_posted_of_locked. The caller has checked that
 * there is room, and checks that the peer is still READY before it posts more.
 */
static inline int mrf_conn_post_of_locked(struct mrf_conn *conn, struct mrf_vwr *wr,
					  struct mrf_op *op, uint32_t bytes, uint64_t len)
{
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	wr->wr_id = conn->owner.id;
	ret = mrf_vconn_post(conn->vconn, wr);
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_conn_denied_locked(conn);
		ret = 0;
	}
	if (mrf_likely(!ret))
		mrf_conn_posted_of_locked(conn->peer->ep, conn, op, bytes, len);
	return ret;
}

/* A frame of a line. */
struct mrf_conn_frame {
	struct mrf_sge *sge;
	int nsge;
	bool is_inline;
	bool has_imm;
	uint32_t imm;
};

/* The same for a frame of op, in as few instructions as possible. */
static inline int mrf_conn_post_frame_locked(struct mrf_conn *conn, struct mrf_op *op,
					     const struct mrf_conn_frame *frame)
{
	uint64_t id = conn->owner.id;
	int ret = frame->has_imm ? mrf_vconn_send_imm(conn->vconn, id, frame->sge, frame->nsge,
						      frame->is_inline, frame->imm)
				 : mrf_vconn_send(conn->vconn, id, frame->sge, frame->nsge,
						  frame->is_inline);

	mrf_lock_held(&conn->peer->ep->lock);
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_conn_denied_locked(conn);
		ret = 0;
	}
	if (mrf_unlikely(ret))
		return ret;
	mrf_conn_posted_of_locked(conn->peer->ep, conn, op, (uint32_t)op->total, op->total);
	op->inflight++;
	return 0;
}

/* The same for a message, which is a packet and part of no operation. */
static inline int mrf_conn_send_locked(struct mrf_conn *conn, struct mrf_vwr *wr)
{
	return mrf_conn_post_of_locked(conn, wr, NULL, 0, 0);
}

/*
 * The same for a part of op, which has a work request more in flight then. With its success
 * `bytes` of op are done.
 */
static inline int mrf_conn_post_locked(struct mrf_conn *conn, struct mrf_vwr *wr, struct mrf_op *op,
				       uint64_t bytes, uint64_t len)
{
	int ret = mrf_conn_post_of_locked(conn, wr, op, (uint32_t)bytes, len);

	if (mrf_likely(!ret))
		op->inflight++;
	return ret;
}

#endif

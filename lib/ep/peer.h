/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer, as an endpoint that accesses its memory sees it: the queue of operations that
 * wait, the connection, and what is known of the peer's regions.
 *
 *            operation comes                established
 *   IDLE ------------------> CONNECTING ------------------> READY
 *    ^  ^                        |  ^                         |
 *    |  +-- failed, queue fails--+  |            work completes in error, or
 *    |                              |            the peer disconnects
 *    |  all flushed, queue empty    | ... not empty           v
 *    +------------------------------+---------------------- BROKEN
 *
 * Invariant: work requests are in flight only in READY and BROKEN; a connection exists in
 * all states but IDLE. All guarded by ep->lock; moves out of IDLE, CONNECTING and BROKEN happen in
 * the agent thread, which alone talks to rdma_cm.
 */
#ifndef MRF_EP_PEER_H
#define MRF_EP_PEER_H

#include "auth/auth.h"
#include "ep/agent.h"
#include "ep/budget.h"
#include "ep/ep.h"
#include "ep/remote.h"
#include "ep/why.h"
#include "proto/proto.h"
#include "proto/request.h"
#include <rdma/fi_errno.h>

enum mrf_peer_state { MRF_PEER_IDLE, MRF_PEER_CONNECTING, MRF_PEER_READY, MRF_PEER_BROKEN };

struct mrf_peer {
	struct mrf_ep *ep;
	struct mrf_list node;	/* in ep->all_peers */
	fi_addr_t fi_addr;
	uint64_t gen;		/* of the address vector's entry */
	const _Atomic uint64_t *gen_word; /* what it is now: another one, the entry is gone */
	union mrf_addr addr;
	enum mrf_peer_state state;
	bool gone;		/* removed from the address vector: freed when idle */
	struct mrf_list starved; /* in ep->starved: waits for room in the endpoint's queue */
	struct mrf_list kick;	/* in agent->kicks; guarded by agent->lock */
	struct mrf_conn *conn;
	struct mrf_list queue;	/* operations in order, not yet wholly posted */
	struct mrf_list redo;	/* flushed ones, in order; go in front of queue */
	unsigned asks;		/* on the way: the length of asked */
	struct mrf_list to_ask;	/* struct mrf_remote.node */
	struct mrf_list asked;	/* likewise */
	struct mrf_idmap remotes;
	size_t hand;		/* where to look for the next that may be forgotten */
	uint64_t epoch;		/* goes up when regions pinned on demand may have moved */
	uint64_t lease_epoch;	/* goes up when the leases are released */
	unsigned leases;	/* answers that are good once, not yet released */
	uint64_t instance;	/* of the peer's endpoint, 0 before the first welcome */
	uint64_t space_id;	/* of the peer's domain: whose raw keys are its */
	uint64_t mr_mode;	/* of the peer's domain */
	struct mrf_key_form key_form; /* in it; READY */
	bool events;		/* immediate data are event numbers there */
	unsigned tries;		/* connection attempts since the last success */
	unsigned turned_away;	/* likewise: those for which there was no room */
	unsigned dials;		/* likewise: those that got no answer */
	int64_t dialled_until;	/* ms: no attempt goes beyond it; 0: none is being made */
	unsigned challenges;	/* likewise: how often a proof was asked for */
	bool challenged;	/* the next attempt has to meet the challenge */
	struct mrf_challenge challenge;
	unsigned losses;	/* connections lost since anything was last done */
	unsigned max_asks;
};

/* One posted work request, in order. */
struct mrf_posted {
	struct mrf_op *op; /* NULL: a question, a request, or another message */
	uint64_t len;
};

/* A request to the peer's agent that has no reply yet: rpc.h. */
struct mrf_awaited {
	struct mrf_op *op; /* NULL: it has failed meanwhile */
	uint64_t cookie;
	uint64_t len;	   /* bytes of the operation that it is about */
	unsigned at;	   /* its place in the ring */
	bool unseen;	   /* it came back, and the peer has certainly not seen it */
};

/*
 * The requests without a reply of one connection, in the order of their turns. One message is on the
 * way; what is asked for meanwhile gathers for the next.
 */
struct mrf_window {
	struct mrf_awaited awaited[MRF_REQUESTS];
	unsigned first, last; /* of these */
	unsigned sent;	      /* those before it are on the way, the others gather */
	size_t len;	      /* bytes of those that gather, */
	size_t reply_len;     /* and of their replies, at most */
	uint32_t turn;	      /* of the next request */
	bool stopped; /* one has to be sent again: the peer does none of those behind it */
};

struct mrf_conn {
	struct mrf_owner owner; /* its id names it in work request ids */
	struct mrf_peer *peer;
	struct mrf_vconn *vconn;
	struct mrf_timer timer;	/* its deadline; agent thread */
	bool lost;		/* the peer disconnected or is gone */
	bool disconnected;	/* we have put our queue pair into error */
	bool waiting;		/* CONNECTING, but only for the next try */
	bool found;		/* the peer's address was resolved */
	bool last;		/* there is no time for another attempt */
	struct mrf_auth_talk talk; /* what we have proved; number 0: nothing */
	struct mrf_posted ring[MRF_CONN_RING];
	unsigned head;		/* oldest in flight */
	unsigned tail;
	/* the first failure, which decides what becomes of the rest */
	enum mrf_wc_status cause;
	/* cause LOCAL, and it is not the first that came back: the one to blame, until it does */
	struct mrf_op *blamed;
	/* what was behind the first failure may have run */
	bool behind_ran;
	struct mrf_vdev_retries retries; /* of the device, when the connection was made */
	bool draining; /* has a deadline for what is in flight to come back */
	bool probed; /* is asked now and then whether the peer is there */
	int64_t heard; /* ms: when it last answered, or was first awaited; probed */
	struct mrf_window window;
	/* answers and replies come in here; two more are requests, on their way and gathering */
	uint8_t *slots;
	uint8_t *outgoing;	/* where requests gather */
	struct mrf_vmr slots_mr;
};

/* The peer behind an address, made when needed. -FI_EADDRNOTAVAIL, -FI_ENOMEM. */
int mrf_peer_get(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_peer **peer);
void mrf_peer_free(struct mrf_peer *peer);
/* Was its address removed? Then it may go, and nothing finds it by that address any more. */
bool mrf_peer_let_go(struct mrf_peer *peer);

/*
 * May another operation begin? The endpoint is not at its limit, or the peer has but a few. Takes
 * in completions if that may make room.
 */
bool mrf_peer_has_place(const struct mrf_peer *peer);
/*
 * Ends an operation with this context that waits, and of which nothing was ever posted, with
 * FI_ECANCELED. -FI_ENOENT: there is none.
 */
int mrf_peer_cancel(struct mrf_ep *ep, const void *context);
/* An operation that was made for this peer: its turn comes. */
void mrf_peer_start(struct mrf_peer *peer, struct mrf_op *op);
/*
 * It has found no room: goes on when completions have made some, be they its own or, in the
 * endpoint's queue, other peers'.
 */
void mrf_peer_await_room(struct mrf_peer *peer);
/* Posts what can be posted; asks what must be asked. */
void mrf_peer_advance(struct mrf_peer *peer);
/* Takes whatever the kernel has completed; operations end, and others go on. */
void mrf_ep_progress(struct mrf_ep *ep);
/* A work completion of a connection of ours. */
void mrf_peer_completed(struct mrf_conn *conn, const struct mrf_wc *wc);
/* Everything that waits fails; what is in flight does once it has come back. */
void mrf_peer_fail(struct mrf_peer *peer, int err, int code, const char *text);
/* The device did not take a question, for the reason ret (-FI_E*). */
void mrf_peer_no_ask(struct mrf_peer *peer, int ret);
/* READY -> BROKEN: what is in flight will come back, then the agent takes it down. */
void mrf_peer_break(struct mrf_peer *peer);
/* BROKEN -> IDLE, after the last completion: what was flushed goes back in front. */
void mrf_peer_rewind(struct mrf_peer *peer);

/* --- conn.c: the agent's half; agent thread, ep->lock held --------------------------- */

/* Does what the state asks for: connects, takes down, frees. peer may be gone afterwards. */
void mrf_conn_service(struct mrf_peer *peer);
void mrf_conn_event(struct mrf_conn *conn, const struct mrf_cm_event *event);
/* A message on the connection: an answer, or a flush. */
void mrf_conn_message(struct mrf_conn *conn, unsigned slot, const struct mrf_wc *wc);
/* Takes the connection down at once. */
void mrf_conn_destroy(struct mrf_conn *conn);
/* Something is awaited of the peer: finds out if it goes. Any thread. */
void mrf_conn_probe(struct mrf_conn *conn);
/* The endpoint closes: no completions any more, all is given back. Frees the peer. */
void mrf_peer_abandon(struct mrf_peer *peer);

/* --- resolve.c ---------------------------------------------------------------------- */

enum mrf_resolved {
	MRF_RESOLVED,
	MRF_RESOLVE_WAIT, /* a question is on the way, or waits for room */
	MRF_RESOLVE_FAIL  /* the operation cannot be: err, code and text say why */
};

/* Is the whole operation allowed? Every key of it is resolved or carries what is needed. */
enum mrf_resolved mrf_resolve_op(struct mrf_op *op, struct mrf_why *why);
/*
 * Where byte `from` of the operation goes: rkey, remote address, and how far that reaches. False
 * when the key has ceased to be known.
 */
bool mrf_resolve_piece(const struct mrf_op *op, uint64_t from, uint32_t *rkey,
		       uint64_t *remote_addr, uint64_t *len);
/* The number of the region that byte `from` goes to; 0: it has none, or is not known. */
uint32_t mrf_resolve_number(const struct mrf_op *op, uint64_t from);
/*
 * How the peer's agent calls byte `from` of the operation: sets key, serial, addr, and in len how
 * far that reaches. False when the key has ceased to be known.
 */
bool mrf_resolve_request(const struct mrf_op *op, uint64_t from, struct mrf_request *request);
/*
 * What number the target wants with the bytes of the operation, a write, that end at `upto`; 0:
 * none. False when a key has ceased to be known.
 */
bool mrf_resolve_event(const struct mrf_op *op, uint64_t upto, uint32_t *event);
/*
 * A cached answer that allows the whole access and serves it from one segment; false: go the
 * long way, whatever the reason.
 */
bool mrf_resolve_cached(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr,
			uint32_t *event);
/* What was known of the operation's keys is not to be trusted any more. */
void mrf_resolve_forget(struct mrf_op *op);

/* --- ask.c ---------------------------------------------------------------------------- */

/*
 * With so many answers that are good once no operation begins to ask: first they are used up. One
 * that holds some already goes on asking, for all of its buffers.
 */
#define MRF_LEASES 32

/*
 * Wants the peer to be asked about these bytes, unless a question about the key is open; once:
 * rather for an answer that is good once.
 */
void mrf_ask_want(struct mrf_peer *peer, struct mrf_remote *remote, uint64_t addr,
		  uint64_t len, bool once);
/* Sends the questions that wait, as far as there is room. Or what the device says. */
int mrf_ask_send(struct mrf_peer *peer);
/* An answer came in. True: operations may go on. */
bool mrf_ask_answered(struct mrf_peer *peer, const struct mrf_answer *answer);
/* Nobody needs the questions that were not sent yet; who does after all wants them again. */
void mrf_ask_unwant(struct mrf_peer *peer);
/* The connection is gone, and with it the questions and the leases that were open. */
void mrf_ask_lost(struct mrf_peer *peer);
/* What the peer said of regions that are pinned on demand is void. */
void mrf_ask_forget(struct mrf_peer *peer);
/* Ends the leases when nothing uses them; READY. True: they have ended. */
bool mrf_ask_release(struct mrf_peer *peer);

/* --- posting --------------------------------------------------------------------------- */

/* Room for one more work request on the connection and in the CQ of its endpoint, ep. */
static inline bool mrf_conn_room_of(const struct mrf_ep *ep, const struct mrf_conn *conn)
{
	return conn->tail - conn->head < MRF_CONN_RING - 1 && ep->scq_used < MRF_EP_SCQ;
}

static inline bool mrf_conn_room(const struct mrf_conn *conn)
{
	return mrf_conn_room_of(conn->peer->ep, conn);
}

/* Remembers what was just posted on a connection of ep. */
static inline void mrf_conn_posted_of(struct mrf_ep *ep, struct mrf_conn *conn,
				      struct mrf_op *op, uint64_t len)
{
	struct mrf_posted *posted = &conn->ring[conn->tail++ % MRF_CONN_RING];

	posted->op = op;
	posted->len = len;
	ep->scq_used++;
}

static inline void mrf_conn_posted(struct mrf_conn *conn, struct mrf_op *op, uint64_t len)
{
	mrf_conn_posted_of(conn->peer->ep, conn, op, len);
}

/* See denied.h. */
void mrf_conn_denied(struct mrf_conn *conn);

/*
 * Posts and remembers. The caller has seen that there is room, and looks whether the peer
 * is READY still before it posts more.
 */
static inline int mrf_conn_post(struct mrf_conn *conn, struct mrf_vwr *wr, struct mrf_op *op,
				uint64_t len)
{
	int ret;

	wr->wr_id = conn->owner.id;
	ret = mrf_vconn_post(conn->vconn, wr);
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_conn_denied(conn);
		ret = 0;
	}
	if (mrf_likely(!ret))
		mrf_conn_posted(conn, op, len);
	return ret;
}

#endif

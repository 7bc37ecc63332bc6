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

/* All of the following: ep->lock held. */

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
/* An operation that was made for this peer: its turn comes. */
void mrf_peer_start(struct mrf_peer *peer, struct mrf_op *op);
/*
 * Ends an operation with this context that waits, and of which nothing was ever posted, with
 * FI_ECANCELED. -FI_ENOENT: there is none.
 */
int mrf_peer_cancel(struct mrf_ep *ep, const void *context);
/* Posts what can be posted; asks what must be asked. */
void mrf_peer_advance(struct mrf_peer *peer);
/* The device did not take a question, for the reason ret (-FI_E*). */
void mrf_peer_no_ask(struct mrf_peer *peer, int ret);
/* Takes whatever the kernel has completed; operations end, and others go on. */
void mrf_ep_progress(struct mrf_ep *ep);
/* The same for a queue that is read: mrf_source.poll. Takes ep->lock. */
void mrf_ep_poll(struct mrf_source *source);
/* A work completion of a connection of ours. */
void mrf_peer_completed(struct mrf_conn *conn, const struct mrf_wc *wc);
/* BROKEN -> IDLE, after the last completion: what was flushed goes back in front. */
void mrf_peer_rewind(struct mrf_peer *peer);

#endif

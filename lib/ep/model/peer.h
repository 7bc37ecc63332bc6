/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer, as an endpoint that accesses its memory sees it, or one that sends it messages: the queue
 * of operations that wait, the connection (its states: conn_state.h), and what is known of the
 * peer's regions, or of the line to it (line.h). Everything is guarded by ep->lock.
 */
#ifndef MRF_EP_MODEL_PEER_H
#define MRF_EP_MODEL_PEER_H

#include "auth/auth.h"
#include "contract/budget.h"
#include "ep/model/conn_state.h"
#include "ep/model/ep.h"
#include "ep/model/fate.h"
#include "loop/agent.h"
#include "proto/greeting.h"
#include "verbs/vpair.h"

struct mrf_lift;
struct mrf_peer;

/* The buffers of op have been brought within reach, or (why) cannot be; ep->lock is held. */
typedef void mrf_prepared(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why);

/* Work for a peer that is done without ep->lock, in order: tx/chores.h. */
struct mrf_chores {
	struct mrf_list list;  /* struct mrf_op.node */
	struct mrf_list of_ep; /* in ep->chores; not while a thread is at them */
	bool busy;	       /* a thread is at them, or the job is not over */
	struct mrf_job job;
	struct mrf_op *unprepared; /* of which the next buffers are brought within reach; or NULL */
	mrf_prepared *prepared;	   /* called when they are */
	bool ahead;		   /* of it: only a chunk is copied, and others may be posted */
	unsigned uncompleted;	   /* operations in list that have not completed */
	bool fenced;		   /* a fenced operation waits until there are none of these */
};

/*
 * What is known of the peer's regions (struct mrf_remote), and the questions about them:
 * resolve/remote.h, resolve/ask.h.
 */
struct mrf_known {
	struct mrf_idmap remotes;
	size_t hand;		/* where to look for the next remote to forget */
	bool mapped;		/* some of the keys are mapped raw keys, or were */
	unsigned asks;		/* questions on the way: the length of asked */
	unsigned max_asks;	/* as the target allows */
	struct mrf_list to_ask; /* struct mrf_remote.node */
	struct mrf_list asked;	/* struct mrf_remote.node */
	uint64_t epoch;		/* goes up when any region pinned on demand may have moved */
	uint64_t lease_epoch;	/* goes up when the leases are released */
	unsigned leases;	/* answers that are good once, not yet released */
	uint64_t leased;	/* the cookie of the last of them */
	bool lately;		/* conn->lease_timer runs for them */
	bool gathers;		/* questions are not sent now: struct mrf_ep.gathered */
};

/* What the peer's endpoint said about itself when it welcomed a connection. */
struct mrf_target {
	uint64_t instance;	      /* of its endpoint; 0 before the first welcome */
	uint64_t space_id;	      /* of its domain; its raw keys carry it */
	uint64_t mr_mode;	      /* of its domain */
	struct mrf_key_form key_form; /* of keys in that mr_mode; valid in READY */
	bool events;		      /* it takes immediate data as event numbers */
	uint64_t ticket; /* random: only this target knows it, and may be asked by it */
	uint32_t lost;	 /* its queue pair that its next welcome is to tell of; 0: none */
};

/*
 * How connecting to the peer has gone: tx/dial.h. What counts attempts begins anew when one has
 * succeeded. permits, waits and waits_since are the agent thread's: tx/permits.h.
 */
struct mrf_dialling {
	unsigned tries;	      /* attempts at an address where nobody listened */
	unsigned unanswered;  /* attempts that got no answer */
	unsigned turned_away; /* attempts for which there was no room */
	enum mrf_full full;   /* the limit that the last of them met */
	int64_t until;	      /* ms: no attempt goes beyond it; 0: none is being made */
	unsigned challenges;  /* how often a proof was demanded */
	bool challenged;      /* the next attempt has to meet the challenge */
	struct mrf_challenge challenge;
	unsigned losses;	     /* connections lost since an operation last succeeded */
	struct mrf_permits *permits; /* of its host; NULL: neither dialled nor waiting */
	struct mrf_list waits;	     /* if it waits for a permit, in permits->waiting */
	int64_t waits_since;	     /* ms: when it began to wait */
};

struct mrf_peer {
	struct mrf_ep *ep;
	struct mrf_list node;	 /* in ep->all_peers */
	enum mrf_conn_kind kind; /* of its connections */
	fi_addr_t fi_addr;
	uint64_t gen;			  /* generation of the address vector's entry */
	const _Atomic uint64_t *gen_word; /* differs from gen once the entry is gone */
	union mrf_addr addr;
	bool gone; /* removed from the address vector: freed when idle */
	/* posting */
	enum mrf_peer_state state; /* of conn; only mrf_peer_move_locked changes it */
	struct mrf_conn *conn;
	/* kind ACCESS: the stamp of the last write with data, if no sync is behind it, or 0: tx/order.h */
	uint64_t entries;
	struct mrf_list queue;	     /* operations in order, not yet wholly posted */
	struct mrf_list redo;	     /* flushed operations, in order; they go before queue */
	struct mrf_list undelivered; /* struct mrf_op.send.await: tx/delivery.h */
	struct mrf_list offered;     /* the same, by their numbers: tx/offer_op.h */
	struct mrf_list starved;     /* in ep->starved: waits for room in ep->scq */
	struct mrf_list watching;    /* in ep->watching: goes on when something has completed */
	struct mrf_list gathered;    /* in ep->gathered: has questions to send */
	struct mrf_list held;	     /* in ep->held: has requests to send (tx/held.h), */
	struct mrf_kick held_kick;   /* and the agent shall do so if nobody else does */
	struct mrf_list woken;	     /* in ep->woken: another peer lets it go on */
	struct mrf_kick kick;	     /* the agent shall look at the peer */
	struct {
		uint64_t addr, value;
		uint32_t rkey;
	} swapped; /* the word that a compare-and-swap last left there (tx/atomic_swap.h) */
	struct mrf_known known; /* kind ACCESS */
	struct mrf_outlet line; /* kind LINE */
	struct mrf_lift *lift;	/* likewise, for bytes that come from devices; NULL: none had to */
	struct mrf_op *lifted;	/* ... of this one; NULL: nothing is copied now */
	struct mrf_chores chores;
	struct mrf_target target;
	struct mrf_dialling dial;
};

/* One posted work request, in order. */
struct mrf_posted {
	struct mrf_op *op; /* NULL: a question, a request, or another message */
	uint32_t bytes;	   /* of op, which are done when it has succeeded */
	uint32_t more;	   /* packets that it takes beside the first */
};

/* A request to the peer's agent that has not been replied to: rpc.h. */
struct mrf_awaited {
	struct mrf_op *op; /* NULL: it has failed meanwhile */
	const struct mrf_rpc *rpc;
	uint32_t what; /* the request's */
	bool carries;  /* its bytes go over the pair */
	bool last;     /* of its message, once that is sent */
	uint32_t number;
	uint64_t pos;		 /* of the operation, from where on */
	uint64_t len;		 /* it covers so many bytes */
	unsigned at;		 /* its index in the ring */
	enum mrf_standing stood; /* where it stood when the connection broke */
};

/* Bytes of a long message that the target has asked for. */
struct mrf_granted {
	uint64_t number, offset;
	uint32_t length;
	uint32_t place; /* 1 and up: to which it was copied (tx/lift.h); 0: it was not */
};

/*
 * The end of the pair over which the bytes of long messages go, at the initiator of a line
 * (link/bulk.h, tx/offer_op.h). One part is one SEND, in the order in which the parts were asked for.
 */
struct mrf_bulk {
	struct mrf_vpair *pair;
	struct mrf_conn *conn;
	uint64_t id; /* of its work requests, in ep->bulks */
	bool named;  /* the target knows the name of this end */
	bool connected;
	struct mrf_vpair_name other;		/* the target's; qpn 0: not known yet */
	struct mrf_granted granted[MRF_GRANTS]; /* asked for, and not yet posted */
	unsigned first, last;			/* indices into granted; only go up */
	struct mrf_posted posted[MRF_GRANTS];	/* likewise */
	unsigned head, tail;
	bool lifted[MRF_GRANTS]; /* those in posted that were copied (tx/lift.h) */
};

/* What was replied to may be on its way still, while others are replied to. */
#define MRF_FAR_IN (2 * MRF_PROTO_STAGES)

/*
 * The end of the pair over which the bytes of a peer's device memory go, at the initiator of a
 * connection for accesses (link/far.h, tx/far_op.h). One request has one SEND.
 */
struct mrf_far {
	struct mrf_vpair *pair;
	struct mrf_conn *conn;
	uint64_t out_id, in_id; /* of its SENDs and its receives, in ep->fars */
	bool connected;
	enum mrf_wc_status cause;		 /* why it has ended; OK: it has not */
	struct mrf_vpair_name other;		 /* the target's; qpn 0: not known yet */
	struct mrf_posted out[MRF_PROTO_STAGES]; /* SENDs that have not completed, */
	unsigned head, tail;			 /* indices into them; only go up */
	struct mrf_posted in[MRF_FAR_IN];	 /* and receives, likewise */
	unsigned first, last;
	unsigned replied;	 /* requests that await bytes, since the pair was made */
	bool brings[MRF_FAR_IN]; /* ... of these: as far as known, from the reply or the bytes */
};

/*
 * The requests of one connection that have no reply yet, in the order of their numbers. One
 * message is on the way, or two if their bytes go over a pair; requests made meanwhile are gathered
 * for the next. Those of few bytes are held until the application has read its completions.
 */
struct mrf_window {
	struct mrf_awaited awaited[MRF_REQUESTS];
	unsigned first, last; /* indices into awaited; only go up */
	unsigned sent;	      /* requests before it are on the way, later ones gathered */
	unsigned messages;    /* on the way */
	size_t len;	      /* bytes of the gathered requests, */
	size_t reply_len;     /* and of their replies, at most; a flush counts as all */
	uint32_t number;      /* of the next request */
	bool stopped;	      /* a request has to be sent again: the peer does none behind it */
};

struct mrf_conn {
	struct mrf_owner owner; /* its id names it in work request ids */
	struct mrf_peer *peer;
	struct mrf_vconn *vconn;
	struct mrf_timer timer; /* its deadline; agent thread */
	/* when to release leases without a question, and to send what is held; agent thread */
	struct mrf_timer lease_timer;
	bool soon;		   /* lease_timer runs */
	bool last;		   /* ASKING: there is no time for another attempt */
	struct mrf_auth_talk talk; /* the key exchange so far; number 0: none */
	struct mrf_posted ring[MRF_CONN_RING];
	unsigned head; /* oldest in flight */
	unsigned tail;
	/* for operations in doubt (tx/fail.h) */
	struct mrf_welcome_line line; /* kind LINE: as it was welcomed */
	uint32_t psn;	     /* of the first packet; once broken, of what comes back next */
	uint32_t mtu;	     /* UINT32_MAX: what is posted cannot be counted in packets */
	uint32_t more;	     /* packets posted beside the first of each work request */
	uint32_t target_qpn; /* of the peer's queue pair */
	bool asks;	     /* broken: the target can be asked what it has done */
	bool told;	     /* the welcome says so of the connection before, which stopped at */
	uint32_t told_psn;
	/* the first failure, which decides what becomes of the rest */
	enum mrf_wc_status cause;
	/*
	 * cause LOCAL, if the failed operation is not the first to come back: that
	 * operation, until it has come back
	 */
	struct mrf_op *blamed;
	/* cause REFUSED, LOCAL or UNSENT: even so, what is behind the failed one may have run */
	bool behind_ran;
	struct mrf_vdev_retries retries; /* device's count when the connection was made */
	bool probed;			 /* the peer is probed now and then */
	int64_t since;			 /* ms: when it was established */
	int64_t heard; /* if probed, ms: when it last answered or was first awaited */
	struct mrf_window window;
	struct mrf_bulk *bulk; /* kind LINE: NULL: none yet, */
	bool wants_bulk;       /* and it is to be made */
	unsigned backs;	       /* receives posted for what its target asks for */
	struct mrf_far *far;   /* kind ACCESS: NULL: none yet, */
	bool wants_far;	       /* and it is to be made */
	/*
	 * answers and replies arrive here; what is behind them holds the requests on the way
	 * and the gathered ones
	 */
	uint8_t *slots;
	uint8_t *outgoing; /* where requests are gathered */
	struct mrf_vmr slots_mr;
};

/* Has it operations that need its connection, as marks do not? */
static inline bool mrf_peer_has_ops(const struct mrf_peer *peer)
{
	mrf_list_each (node, &peer->queue) {
		if (!(mrf_list_entry(node, struct mrf_op, node)->fence & MRF_FENCE_MARK))
			return true;
	}
	return false;
}

/* Is there something for which it has to have a connection? */
static inline bool mrf_peer_has_work(const struct mrf_peer *peer)
{
	return mrf_peer_has_ops(peer) || !mrf_list_empty(&peer->offered) || peer->line.gave_up;
}

#endif

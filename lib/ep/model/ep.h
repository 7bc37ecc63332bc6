/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDM endpoint over RC queue pairs. Connections are one-way: operations that this
 * endpoint starts run on connections that it opened (struct mrf_conn); operations that
 * peers start against it run on connections that they opened (struct mrf_passive). A refused
 * access breaks both queue pairs of its connection on rxe, and so never affects the other
 * direction.
 *
 * ep->lock (rank EP) guards peers, connections, operations and resolved keys: the
 * application's threads and the agent both take it. Everything that talks to rdma_cm runs
 * in the agent thread.
 */
#ifndef MRF_EP_MODEL_EP_H
#define MRF_EP_MODEL_EP_H

#include <stdatomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include "auth/auth.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "contract/budget.h"
#include "contract/limits.h"
#include "domain/domain.h"
#include "ep/model/line.h"
#include "ep/model/op.h"
#include "loop/agent_calls.h"
#include "obj/av.h"
#include "obj/cntr.h"
#include "obj/eq.h"

/*
 * An endpoint accepts max_ops operations before it answers -FI_EAGAIN: MRF_EP_OPS, or as many as
 * tx_attr->size asks for, if that is more. Those that do
 * not fit into its queue pairs wait in the peers' queues. One peer that does not answer
 * may hold all of them, so there are more places beyond, which only peers with fewer than
 * MRF_EP_FEW_OPS operations get.
 */
#define MRF_EP_OPS MRF_LIMIT_TX_SIZE
#define MRF_EP_FEW_OPS 16
#define MRF_EP_ALL_OPS(ep) ((ep)->max_ops + 64 * MRF_EP_FEW_OPS)
#define MRF_EP_SCQ 1023 /* work requests in flight on all connections of an endpoint */
/*
 * ... on one connection. It is most of what a peer takes of this side: the device keeps half a
 * KiB for each. With 32 a peer took 24 KiB of queues instead of 72, but with 64 operations in
 * flight, as bandwidth is usually measured, writes of 8 bytes took 8 % more instructions and
 * reads 14 %, because half of them waited in the peer's queue.
 */
#define MRF_CONN_RING 128
/*
 * Parts that an endpoint keeps of one region that is pinned on demand: as many as a process
 * has mappings by default (vm.max_map_count).
 */
#define MRF_EP_PARTS 65536

struct mrf_atomic_cells;
struct mrf_inbox;
struct mrf_atomic_loop;
struct mrf_peer;
struct mrf_passive;

/*
 * Where the queue pairs of connections that peers had to an endpoint have stopped: initiators
 * that lost a connection ask for it when they connect again. Agent thread.
 */
struct mrf_end {
	uint64_t order;	 /* later ones have a higher one; 0: this place was never used */
	uint64_t ticket; /* its initiator's: nobody else may ask */
	union mrf_addr addr;
	uint32_t qpn; /* of ours */
	uint32_t psn;
};

/* By fi_addr; NULL where there is none. */
struct mrf_peers {
	struct mrf_peer **of;
	size_t n;
};

struct mrf_ends {
	struct mrf_end last[MRF_ENDS];
	uint64_t order; /* of the latest */
};

struct mrf_ep {
	struct fid_ep fid;
	struct mrf_obj obj;
	struct mrf_hold parent;
	struct mrf_mr_port port; /* regions are bound to it */
	struct mrf_domain *domain;
	struct mrf_agent *agent;
	union mrf_addr addr; /* where it listens; immutable after open */
	uint64_t instance;   /* random */
	uint64_t caps;
	uint64_t orders;       /* of MRF_MSG_ORDER_EXTRA, those in force; immutable after open */
	unsigned max_parts;    /* MRF_EP_PARTS; immutable after open */
	unsigned inject;       /* bytes; immutable after open */
	size_t min_multi;      /* FI_OPT_MIN_MULTI_RECV; guarded by lock */
	unsigned max_recvs;    /* fi_rx_size_left counts down from there; immutable after open */
	struct mrf_lock setup; /* rank SETUP: held to change the fields up to lock */
	_Atomic uint64_t op_flags; /* of calls without flags; FI_GET/SETOPSFLAG */
	_Atomic uint64_t rx_flags; /* of calls that receive */
	atomic_bool enabled;
	/*
	 * The fast paths of calls without flags, set from enable and op_flags; off until
	 * enabled.
	 */
	_Atomic size_t short_max[2]; /* by kind: the most bytes that a fast path takes */
	atomic_bool short_atomic[3]; /* by family: may the fast path take it */
	_Atomic size_t short_send;   /* messages of fewer bytes: ep/send_short.h; 0: none */
	atomic_bool short_recv;	     /* receives: ep/msg_calls.c */
	atomic_bool short_silent;    /* no completion when they succeed */

	/*
	 * bindings; immutable after enable, except counters, whose change needs lock, too
	 */
	struct mrf_av *av;
	struct mrf_cq *tx_cq;
	struct mrf_cq *rx_cq;
	bool told_dropped; /* that data are dropped for want of rx_cq; agent thread */
	struct mrf_cntr *wr_cntr;
	struct mrf_cntr *rd_cntr;
	struct mrf_cntr *snd_cntr;
	struct mrf_cntr *rcv_cntr;
	bool selective;		      /* tx_cq bound with FI_SELECTIVE_COMPLETION */
	bool rx_selective;	      /* rx_cq, too */
	struct mrf_av_watch av_watch; /* while av is not NULL */
	struct mrf_hold hold_av, hold_tx, hold_rx, hold_wr, hold_rd, hold_snd, hold_rcv, hold_rem,
		hold_eq;
	/* of rx_cq only if it receives messages, and if it is another one than tx_cq */
	struct mrf_wait_link link_tx, link_rx, link_wr, link_rd, link_snd, link_rcv;
	struct mrf_source source;

	struct mrf_lock lock; /* rank EP: guards all below */
	struct mrf_vcq *scq;  /* completions of this endpoint's work requests */
	bool watched;	      /* the agent waits for scq's fd, and only it stops that */
	bool posts_later;     /* what completions let go is posted by the agent */
	bool starting;	      /* a call posts what it has queued, and will poll scq itself */
	bool waits;	      /* meanwhile: the next step depends on completions */
	unsigned scq_used;    /* work requests in flight; <= MRF_EP_SCQ */
	uint64_t clock;	      /* for op->stamp: goes up with each operation */
	struct mrf_peers peers[MRF_CONN_KINDS];
	void (*kicked)(struct mrf_kick *kick); /* struct mrf_peer.kick.look; constant */
	struct mrf_list starved;  /* struct mrf_peer.starved, the longest waiting first */
	struct mrf_list watching; /* struct mrf_peer.watching: the agent waits for completions */
	/*
	 * One answer can serve all operations that began before the question was sent. So of the
	 * operations that need leases and begin between two looks for completions only the first
	 * asks at once.
	 */
	struct mrf_list gathered;  /* struct mrf_peer.gathered */
	bool begun;		   /* there was such a first one */
	bool entries;		   /* there was a struct mrf_peer.entries */
	struct mrf_list held;	   /* struct mrf_peer.held: likewise, requests: tx/rpc.h */
	struct mrf_list woken;	   /* struct mrf_peer.woken; empty when lock is free */
	struct mrf_list all_peers; /* struct mrf_peer.node, removed addresses included */
	struct mrf_idmap tickets;  /* of lines: struct mrf_peer.target.ticket -> struct mrf_peer */
	struct mrf_idmap conns;	   /* id -> struct mrf_conn, for work completions */
	struct mrf_idmap bulks;	   /* the same, for those of long messages: struct mrf_bulk */
	struct mrf_idmap fars;	   /* ... and of memory of devices at peers: struct mrf_far */
	struct mrf_conn *last;	   /* of the last completion, and most likely of the next */
	/* With FI_MSG (ep/msg/inbox.h); NULL without. */
	struct mrf_inbox *inbox;
	struct mrf_inbox *lines; /* the same, once it has a queue; NULL before */
	struct mrf_list free_ops;
	/* for mrf_chores_run; source.left unless both are empty */
	struct mrf_list chores; /* struct mrf_peer.chores.of_ep */
	struct mrf_list drops;	/* operations that have completed, with registrations */
	atomic_uint ended;	/* of drops, and those that a thread is at */
	unsigned nops;		/* in use */
	unsigned holdups;	/* peers with operations that wait for chores to complete */
	unsigned made;		/* made so far; <= MRF_EP_ALL_OPS */
	unsigned max_ops;	/* constant */
	/* atomic_op.h; NULL before the first use, then immutable */
	struct mrf_atomic_cells *cells;
	struct mrf_buf buf; /* has a lock of its own */

	/* agent thread only */
	struct mrf_owner owner; /* of the listener's events */
	struct mrf_vconn *listener;
	struct mrf_list of_agent;     /* in mrf_eps.all */
	struct mrf_list passive;      /* struct mrf_passive.node */
	struct mrf_atomic_loop *loop; /* NULL before it is needed */
	struct mrf_timer idle;	      /* of its lines: tx/idle.h */
	struct mrf_nonces nonces;     /* for its challenges to peers, if it has a key */
	struct mrf_ends ends;	      /* of connections from peers */
};

/*
 * What the endpoints of one domain share, from the first of them until the domain closes.
 * Only the agent's thread looks at it.
 */
struct mrf_eps {
	struct mrf_agent agent;	       /* the mechanism, which knows nothing of the rest */
	struct mrf_mr_space *space;    /* the domain's */
	struct mrf_cache *cache;       /* of local buffers */
	struct mrf_list all;	       /* struct mrf_ep.of_agent */
	unsigned npassive;	       /* struct mrf_passive made and not destroyed */
	struct mrf_list stagings;      /* struct mrf_staging.node (rx/staging.h), */
	unsigned nstagings;	       /* how many they are, */
	struct mrf_timer staging_look; /* and when to look which ones are not used */
	struct mrf_list permits;       /* struct mrf_permits.node */
	struct mrf_list half;	       /* struct mrf_passive.half, the oldest first */
	struct mrf_list disconnected;  /* struct mrf_passive.disconnected */
	struct mrf_list ready;	       /* struct mrf_passive.ready, in the order of their turns */
	struct mrf_list works;	       /* struct mrf_work.node (rx/work.h): spare ones, */
	struct mrf_list orphans;       /* and those that jobs are at whose connections are gone */
};

static inline struct mrf_eps *mrf_eps_of(struct mrf_agent *agent)
{
	return mrf_container_of(agent, struct mrf_eps, agent);
}

/*
 * The agent is told, once, when something completes on the endpoint's queues (the one of its lines
 * is to be armed, too). Completions that are there already do not count.
 */
static inline void mrf_ep_watch_locked(struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	ep->watched = true;
	mrf_agent_cq_watch(ep->agent, ep->scq, ep);
}

static inline struct mrf_ep *mrf_ep_of(struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_ep, fid.fid);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent as a mechanism: one thread that owns all rdma_cm traffic of a device, and reports
 * events to owners and to a guest, which it knows only by their tables of calls. Messages
 * (RECVs of all connections, SENDs of answers) complete on queues that only this thread polls
 * (agent_cq.h).
 *
 * There are six ways to get something done in it, or beside it:
 *
 *   owner    Something belongs to you that the device or rdma_cm reports about: a connection.
 *            mrf_agent_own gives it an id; completions and events come to its calls, in the
 *            agent's thread, from then until mrf_agent_disown.
 *   timer    The work is to be done later. Agent thread only; all due timers run in one turn.
 *   watcher  The agent shall look at a queue that other threads poll, too, once something has
 *            completed there, in case none of them does (mrf_agent_cq_watch).
 *   kick     From any thread, with any lock up to an endpoint's, without waiting: "look at this
 *            again". Kicks do not add up: the agent looks at least once after the last of them.
 *   command  From any thread, without a lock: the agent does this before anything else, and the
 *            caller waits for the result. For work that must not run beside the agent's own:
 *            opening and closing. A long command is carried on turn by turn.
 *   job      The work may block, or take longer than a turn: reading in or writing out memory,
 *            waiting for storage. A thread beside the agent does it (job.h), and tells the
 *            agent when it is over. The agent itself never waits for anything but its events.
 *
 * An owner cuts long work that does not block, such as many requests, into parts, and asks for
 * the next turn with `more`. Other threads reach the agent under agent->lock (rank AGENT).
 */
#ifndef MRF_LOOP_AGENT_H
#define MRF_LOOP_AGENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/heap.h"
#include "base/idmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "loop/agent_cq.h"
#include "loop/job.h"

struct mrf_agent;
struct mrf_cm_event;
struct mrf_owner;
struct mrf_vcm;
struct mrf_vcq;
struct mrf_vdev;
struct mrf_wc;

/*
 * The agent's calls to an owner. Agent thread, no lock held; the owner may be freed by
 * the call.
 */
struct mrf_owner_calls {
	void (*event)(struct mrf_owner *owner, const struct mrf_cm_event *event);
	void (*message)(struct mrf_owner *owner, unsigned slot, const struct mrf_wc *wc);
	/*
	 * The device has broken the owner's connection. NULL: the owner has no
	 * connection.
	 */
	void (*broke)(struct mrf_owner *owner);
	/*
	 * rdma_cm is lost. going: does the owner still have something to end? NULL: always. If
	 * so, end ends it.
	 */
	bool (*going)(struct mrf_owner *owner);
	void (*end)(struct mrf_owner *owner);
	/*
	 * Some of what the peer knows about regions pinned on demand is no longer valid. NULL:
	 * the peer knows nothing about them.
	 */
	void (*forget)(struct mrf_owner *owner);
};

/* The object that the work request id of a message, or an rdma_cm event, belongs to. */
struct mrf_owner {
	const struct mrf_owner_calls *calls;
	struct mrf_agent_cq *cq;   /* where its messages complete */
	const struct mrf_vcq *scq; /* where its other work requests complete; or NULL */
	uint64_t id;		   /* never reused by the agent; 0: unknown to it */
};

/* An object of the guest's that the agent shall look at: mrf_agent_kick. */
struct mrf_kick {
	struct mrf_list node;		     /* in agent->kicks; guarded by agent->lock */
	void (*look)(struct mrf_kick *kick); /* agent thread, no lock held; constant */
};

/*
 * The agent's calls to the layer that started it. Agent thread, no lock held. Constant.
 */
struct mrf_agent_guest {
	/* mrf_agent_cq_watch was called, and something has completed. */
	void (*completed)(void *watcher);
	/* mrf_agent_removed was called. */
	void (*removed)(struct mrf_agent *agent);
	/* Serves peers for a limited time, or until a command comes. True: some are left. */
	bool (*serve)(struct mrf_agent *agent);
	/* The turn is over, and everything that was polled has been handled. */
	void (*over)(struct mrf_agent *agent);
};

/* over is called in the agent thread, no lock held, when the time has come. */
struct mrf_timer {
	struct mrf_heap_node node; /* in agent->timed while it runs; its key is the time, in ms */
	void (*over)(struct mrf_timer *timer);
};

#define MRF_WR_SLOT_BITS 8
#define MRF_WR_ID(owner_id, slot) ((owner_id) << MRF_WR_SLOT_BITS | (slot))

struct mrf_agent {
	struct mrf_vdev *vdev;
	const struct mrf_agent_guest *guest;
	pthread_t thread;
	int epoll_fd;
	int event_fd; /* signalled while kicks or commands wait */
	struct mrf_vcm *cm;
	struct mrf_vcq *cq; /* the first of cqs, which has the descriptor of all */

	struct mrf_lock lock;  /* rank AGENT: guards the lists and crews */
	struct mrf_list kicks; /* struct mrf_kick.node */
	struct mrf_list commands;
	struct mrf_crew crew[MRF_CREWS];
	struct mrf_list done;  /* struct mrf_job.node */
	atomic_bool done_told; /* the agent is to look there */
	atomic_bool stop;
	atomic_bool commanded; /* commands wait: they go before peers' requests */
	atomic_bool denied;    /* rdma_cm is lost: see below */
	atomic_bool gone;      /* the device was removed: agent.c */
	atomic_bool dropped;   /* mrf_agent_dropped was called */
	atomic_bool removed;   /* mrf_agent_removed was called */

	/* agent thread only */
	struct mrf_idmap owners; /* id -> struct mrf_owner */
	uint64_t last_id;
	bool suspect; /* something was refused: check whether rdma_cm is lost */
	bool suspect_said;
	struct mrf_heap timed; /* struct mrf_timer.node */
	bool more;	       /* this turn has left work for the next one */
	struct mrf_list cqs;   /* struct mrf_agent_cq.node */
	unsigned ncqs;
};

/*
 * Gives the owner its id and its completion queue, which may have to be made; want: how many
 * completions it may have there. -FI_ENOMEM, and the device's errors: no queue has room for so
 * many, and no other can be made.
 */
int mrf_agent_own(struct mrf_agent *agent, struct mrf_owner *owner, unsigned want);
/* Another id of the same kind, for work requests that complete elsewhere. */
uint64_t mrf_agent_new_id(struct mrf_agent *agent);
/*
 * The owner's queue pair is gone. At most `had` of its completions may still be in the queue
 * and occupy room there.
 */
void mrf_agent_disown(struct mrf_agent *agent, struct mrf_owner *owner, unsigned had);

/*
 * Handles all messages and immediate data that have arrived, so that everything a peer
 * knows to be done is counted when this returns. The peers' questions and requests still
 * wait for their turn. Agent thread, no lock held.
 */
void mrf_agent_poll(struct mrf_agent *agent);

/*
 * Agent thread: the timer fires in so many ms, unless it is stopped or set again. A timer that
 * is all 0 does not run, and can be stopped.
 */
void mrf_timer_set(struct mrf_agent *agent, struct mrf_timer *timer, int64_t ms);
void mrf_timer_stop(struct mrf_agent *agent, struct mrf_timer *timer);

static inline bool mrf_timer_runs(const struct mrf_timer *timer)
{
	return timer->node.in;
}

/*
 * Starts the thread of an agent, which belongs to the caller. -FI_ENOMEM, or an error of the
 * kernel's or the device's.
 */
int mrf_agent_start(struct mrf_agent *agent, struct mrf_vdev *vdev,
		    const struct mrf_agent_guest *guest);
/* The thread has ended when this returns. No owner may be left. */
void mrf_agent_stop(struct mrf_agent *agent);

/* --- lost credentials ------------------------------------------------------------------ */

/*
 * The kernel accepts work requests, and calls of rdma_cm, only with the credentials that opened
 * the descriptor. After set*uid, setgroups, capset and the like it answers EACCES for ever, either
 * to the thread that changed its credentials or to all threads. A work request refused in this way
 * is already in the queue that process and kernel share, and may still run. So it counts as posted,
 * and its connection is ended.
 *
 * If the agent's thread itself is refused, nothing can be saved: the agent gives up all
 * connections and closes rdma_cm, which tells the peers.
 */

/* The text of operations that are not started for this reason. */
#define MRF_DENIED_TEXT                                                             \
	"the kernel accepts no work requests from this process (or thread), whose " \
	"credentials have changed since it opened the domain: nothing was done"

/*
 * The kernel refused one of the agent's own calls: logs that, once. As soon as no lock is
 * held, the agent checks whether the kernel refuses everything. Agent thread.
 */
void mrf_agent_suspect(struct mrf_agent *agent);
/*
 * The agent has lost rdma_cm: ends everything that depends on it. Agent thread, no lock
 * held.
 */
void mrf_agent_denied(struct mrf_agent *agent);

/* Logs that for this reason nothing more can be opened, and returns -FI_EACCES. */
int mrf_agent_refuse(void);

#endif

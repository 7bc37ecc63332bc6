/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent: one thread per domain that owns all rdma_cm traffic, answers peers' questions,
 * takes in answers, and drives connections and retries, so that neither a target nor an
 * initiator has to call anything for that. It starts with the first endpoint and stops when the
 * domain closes.
 *
 * Messages (RECVs of all connections, SENDs of answers) complete on agent->cq, which only this
 * thread polls. Other threads reach it through commands: agent->lock (rank AGENT).
 */
#ifndef MRF_EP_AGENT_H
#define MRF_EP_AGENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/idmap.h"
#include "base/list.h"
#include "base/lock.h"

/* What a work request id on agent->cq, or an rdma_cm event, belongs to. */
enum mrf_owner_kind { MRF_OWNER_EP, MRF_OWNER_CONN, MRF_OWNER_PASV };

struct mrf_owner {
	enum mrf_owner_kind kind;
	uint64_t id; /* never used twice in the life of an agent; 0: not known to it */
};

/* Calls over in the agent thread, no lock held, once its time has come. */
struct mrf_timer {
	struct mrf_list node; /* in agent->timed while it runs */
	int64_t at;	      /* ms */
	void (*over)(struct mrf_timer *timer);
};

#define MRF_WR_SLOT_BITS 8
#define MRF_WR_ID(owner_id, slot) ((owner_id) << MRF_WR_SLOT_BITS | (slot))

struct mrf_domain;
struct mrf_ep;
struct mrf_peer;

struct mrf_agent {
	struct mrf_domain *domain;
	pthread_t thread;
	int epoll_fd;
	int event_fd;	       /* raised when kicks or commands wait */
	struct mrf_vcm *cm;
	struct mrf_vcq *cq;

	struct mrf_lock lock;  /* rank AGENT: guards the two lists and stop */
	struct mrf_list kicks; /* struct mrf_peer.kick */
	struct mrf_list commands;
	bool stop;
	atomic_bool commanded; /* commands wait: peers' requests do not go before them */
	atomic_bool denied; /* rdma_cm is lost: denied.h */
	atomic_bool gone;   /* the device was removed: device.h */
	atomic_bool dropped; /* pins made on demand are gone: peers are to be told */
	atomic_bool removed; /* addresses were: their connections are to be closed */

	/* agent thread only */
	struct mrf_idmap owners; /* id -> struct mrf_owner */
	uint64_t last_id;
	bool suspect;	   /* the kernel refused something: look whether all is lost */
	bool suspect_said;
	struct mrf_list timed;	 /* struct mrf_timer.node */
	struct mrf_list eps;	 /* struct mrf_ep.of_agent */
	struct mrf_list half;	 /* struct mrf_pasv.half, the oldest first */
	struct mrf_list doomed;	 /* struct mrf_pasv.doomed */
	struct mrf_list ready;	 /* struct mrf_pasv.ready, in the order of their turns */
	bool more;		 /* something is left of what was looked at in this turn */
	/*
	 * Completions that may be or come on cq; <= MRF_AGENT_CQ. Those of an owner that is gone
	 * are owed until the queue was empty, or so many were taken that its own are out.
	 */
	unsigned cq_used;
	unsigned cq_owed;
	uint64_t taken; /* completions, ever */
	uint64_t owed_until;
};

#define MRF_AGENT_CQ 16383

/* Gives the owner its id; want: completions it may have on agent->cq. -FI_ENOMEM, -FI_ENOSPC. */
int mrf_agent_own(struct mrf_agent *agent, struct mrf_owner *owner, unsigned want);
/* Its queue pair is gone. Its completions may still lie in the queue, and take their places there. */
void mrf_agent_disown(struct mrf_agent *agent, struct mrf_owner *owner, unsigned had);

/*
 * Takes in all messages and immediate data that are there: what peers know to be done counts
 * afterwards. Their questions and requests wait for their turns. Agent thread, no lock held.
 */
void mrf_agent_poll(struct mrf_agent *agent);

/* Agent thread: the timer calls in so many ms, unless it is stopped or set again. */
void mrf_timer_set(struct mrf_agent *agent, struct mrf_timer *timer, int64_t ms);
void mrf_timer_stop(struct mrf_timer *timer);

/* The target's half, target.c and target_serve.c; agent thread. */
struct mrf_pasv;
struct mrf_cm_event;
struct mrf_wc;
void mrf_pasv_request(struct mrf_ep *ep, const struct mrf_cm_event *event);
void mrf_pasv_event(struct mrf_pasv *pasv, const struct mrf_cm_event *event);
void mrf_pasv_message(struct mrf_pasv *pasv, unsigned slot, const struct mrf_wc *wc);
/* Serves peers, one question or request of each in turn: for a time, until a command comes. */
void mrf_agent_serve(struct mrf_agent *agent);
/* Its peer is gone: takes in what came before, and ends it. */
void mrf_pasv_gone(struct mrf_pasv *pasv);
/* Likewise of all that an endpoint has. */
void mrf_pasv_destroy_all(struct mrf_ep *ep);
/* Destroys those that are doomed. Nothing that was polled may be unhandled. */
void mrf_pasv_bury(struct mrf_agent *agent);
/* Tells the peer that what it knows of regions pinned on demand is void. */
void mrf_pasv_forget(struct mrf_pasv *pasv);
struct mrf_pasv *mrf_pasv_of(struct mrf_owner *owner);

/* The domain's agent, started when needed. */
int mrf_agent_get(struct mrf_domain *domain, struct mrf_agent **agent);
void mrf_agent_stop(struct mrf_agent *agent);

struct mrf_av_watch;
/* Addresses were removed from an endpoint's address vector. Any thread, any lock up to the AV's. */
void mrf_agent_av_removed(struct mrf_av_watch *watch);

/* The peer's connection wants something of the agent; ep->lock held. Never blocks or fails. */
void mrf_agent_kick(struct mrf_peer *peer);
/* Takes that back, because the peer is about to be freed. Agent thread, ep->lock held. */
void mrf_agent_unkick(struct mrf_peer *peer);
/*
 * What comes next for the peer depends on completions: the agent waits for them, so that the
 * queue moves though the application does not read its CQ. ep->lock held.
 */
void mrf_agent_watch(struct mrf_peer *peer);

/* Binds and later listens, in the agent thread; each returns when it is done. */
int mrf_agent_ep_open(struct mrf_agent *agent, struct mrf_ep *ep);
int mrf_agent_ep_enable(struct mrf_agent *agent, struct mrf_ep *ep);
/* Takes down all connections of ep, both ways. No callback for ep afterwards. */
void mrf_agent_ep_close(struct mrf_agent *agent, struct mrf_ep *ep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion queues of the agent's messages, and the places in them. Agent thread.
 *
 * What completes in most of them wakes the agent. Others are quiet: the agent looks into them in each
 * turn, but is only woken if it has asked for that, once each time (mrf_agent_cq_listen). They are
 * for what the agent seldom waits for, such as its own SENDs.
 *
 * A device limits how many completions one queue holds, so there are as many queues as
 * the connections need. All of them share the descriptor of the first.
 *
 * Places are counted, so that no queue can overflow. A connection that is gone leaves
 * flushed work requests in its queue; its places are free again only when these have been
 * taken out.
 */
#ifndef MRF_LOOP_AGENT_CQ_H
#define MRF_LOOP_AGENT_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

#define MRF_AGENT_CQ 4095	/* completions that one queue holds, */
#define MRF_AGENT_QUIET_CQ 1023 /* and one that is quiet */

struct mrf_agent;
struct mrf_vcq;
struct mrf_wc;

struct mrf_agent_cq {
	struct mrf_list node; /* in agent->cqs, the first that was opened first */
	struct mrf_vcq *vcq;
	unsigned size; /* how many completions it holds */
	bool quiet;
	bool listens; /* a quiet one: the next completion wakes the agent */
	/*
	 * The number of completions that are, or may still arrive, in the queue; <= size. The completions of an owner that is gone stay counted, as owed,
	 * until the queue has been seen empty or so many completions have been taken that
	 * the owner's must be among them. A queue that holds none is closed if another one
	 * holds none either.
	 */
	unsigned used;
	unsigned owed;
	uint64_t taken; /* completions taken so far */
	uint64_t owed_until;
};

/* Opens a queue; the first is agent->cq, and not quiet. */
int mrf_agent_cq_open(struct mrf_agent *agent, bool quiet, struct mrf_agent_cq **cq);
void mrf_agent_cq_close(struct mrf_agent *agent);
/*
 * Takes want places in a queue of that kind, which is opened if no such queue has that many.
 * Returns the device's errors.
 */
int mrf_agent_cq_take(struct mrf_agent *agent, unsigned want, bool quiet, struct mrf_agent_cq **cq);
/* Gives back places whose completions may still be in the queue. */
void mrf_agent_cq_owe(struct mrf_agent_cq *cq, unsigned had);
/* Hands at most about max completions of each queue to handle. False: there are no more. */
bool mrf_agent_cq_handle(struct mrf_agent *agent, unsigned max,
			 void (*handle)(struct mrf_agent *agent, const struct mrf_wc *wc));
/* Takes an event off the descriptor and arms the queue that it came from, unless that is quiet. */
void mrf_agent_cq_event(struct mrf_agent *agent);
/*
 * The next completion in a quiet queue wakes the agent, and so does one that is there already, by
 * another turn.
 */
void mrf_agent_cq_listen(struct mrf_agent *agent, struct mrf_agent_cq *cq);

#endif

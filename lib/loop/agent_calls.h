/* SPDX-License-Identifier: BSD-2-Clause */
/* How other threads reach the agent: kicks, commands, and notice of what has changed. */
#ifndef MRF_LOOP_AGENT_CALLS_H
#define MRF_LOOP_AGENT_CALLS_H

#include "loop/agent.h"

/* --- any thread --------------------------------------------------------------------- */

/* Makes the agent thread look (again) for kicks and commands. */
void mrf_agent_wake(struct mrf_agent *agent);
/*
 * Calls run in the agent thread, no lock held, and returns its result. A command goes before
 * everything that peers ask for. A long one returns MRF_AGENT_LATER after each part but the
 * last, and is called again in the next turn.
 */
#define MRF_AGENT_LATER 1
int mrf_agent_command(struct mrf_agent *agent, void *arg,
		      int (*run)(struct mrf_agent *agent, void *arg));

/*
 * What the owners' peers know is no longer valid: each owner is told before anything else.
 * Never blocks, allocates or takes a lock.
 */
void mrf_agent_dropped(struct mrf_agent *agent);
/* Addresses were removed from an address vector. Any lock up to the AV's. */
void mrf_agent_removed(struct mrf_agent *agent);

/* Has kick->look called. Never blocks or fails. */
void mrf_agent_kick(struct mrf_agent *agent, struct mrf_kick *kick);
/* Withdraws a kick whose object is about to be freed. Agent thread. */
void mrf_agent_unkick(struct mrf_agent *agent, struct mrf_kick *kick);
/*
 * Has the guest told, once, when something has completed there since the queue was last polled
 * empty. watcher: as mrf_agent_cq_add was given it.
 */
void mrf_agent_cq_watch(struct mrf_agent *agent, struct mrf_vcq *cq, void *watcher);

/* --- the agent thread, no lock held ------------------------------------------------- */

/* Lends the agent a queue, which is not watched yet. Negative errno. */
int mrf_agent_cq_add(struct mrf_agent *agent, struct mrf_vcq *cq, void *watcher);
/* The guest is no longer told about this queue. */
void mrf_agent_cq_remove(struct mrf_agent *agent, struct mrf_vcq *cq);

/* Calls the guest for each kick. */
void mrf_agent_run_kicks(struct mrf_agent *agent);
/*
 * Runs the commands; the thread that waited for one may free an endpoint as soon as it is
 * done.
 */
void mrf_agent_run_commands(struct mrf_agent *agent);
/* Tells the peers if pins that were made on demand are gone. */
void mrf_agent_tell_peers(struct mrf_agent *agent);

#endif

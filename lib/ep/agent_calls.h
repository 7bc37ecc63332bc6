/* SPDX-License-Identifier: BSD-2-Clause */
/* How other threads reach the agent: kicks, commands, and notice of what has changed. */
#ifndef MRF_EP_AGENT_CALLS_H
#define MRF_EP_AGENT_CALLS_H

#include "ep/agent.h"

/* --- any thread --------------------------------------------------------------------- */

/* Makes the agent thread look (again) for kicks and commands. */
void mrf_agent_wake(struct mrf_agent *agent);
/*
 * Calls run in the agent thread, no lock held, and returns its result. A command goes
 * before everything that peers ask for.
 */
int mrf_agent_command(struct mrf_agent *agent, void *arg,
		      int (*run)(struct mrf_agent *agent, void *arg));

struct mrf_av_watch;
/*
 * Addresses were removed from an endpoint's address vector. Any thread, any lock up to
 * the AV's.
 */
void mrf_agent_av_removed(struct mrf_av_watch *watch);

/*
 * The peer's connection needs the agent's attention; ep->lock held. Never blocks or
 * fails.
 */
void mrf_agent_kick(struct mrf_peer *peer);
/* Withdraws the kick of a peer that is about to be freed. Agent thread, ep->lock held. */
void mrf_agent_unkick(struct mrf_peer *peer);
/*
 * The peer's next step depends on completions: the agent waits for them, so that the
 * queue moves even if the application does not read its CQ. ep->lock held.
 */
void mrf_agent_watch(struct mrf_peer *peer);

/* --- the agent thread, no lock held ------------------------------------------------- */

/* Attends to the peers that were kicked. */
void mrf_agent_run_kicks(struct mrf_agent *agent);
/*
 * Runs the commands; the thread that waited for one may free an endpoint as soon as it is
 * done.
 */
void mrf_agent_run_commands(struct mrf_agent *agent);
/* Tells the peers if pins that were made on demand are gone. */
void mrf_agent_tell_peers(struct mrf_agent *agent);

#endif

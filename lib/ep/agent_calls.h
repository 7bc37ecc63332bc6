/* SPDX-License-Identifier: BSD-2-Clause */
/* What other threads want of the agent: kicks, commands, and word of what has changed. */
#ifndef MRF_EP_AGENT_CALLS_H
#define MRF_EP_AGENT_CALLS_H

#include "ep/agent.h"

/* --- any thread ------------------------------------------------------------------------- */

/* The agent thread looks (again) at what others want. */
void mrf_agent_wake(struct mrf_agent *agent);
/*
 * Runs run in the agent thread, no lock held, and returns what it does. It goes before all that
 * peers want.
 */
int mrf_agent_command(struct mrf_agent *agent, void *arg,
		      int (*run)(struct mrf_agent *agent, void *arg));

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

/* --- the agent thread, no lock held ----------------------------------------------------- */

/* Does what the peers want that were kicked. */
void mrf_agent_run_kicks(struct mrf_agent *agent);
/* Runs what other threads wait for; one of them may free an endpoint afterwards. */
void mrf_agent_run_commands(struct mrf_agent *agent);
/* Tells the peers when pins that were made on demand are gone. */
void mrf_agent_tell_peers(struct mrf_agent *agent);

#endif

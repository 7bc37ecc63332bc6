/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/ep: what the files of the agent do for each other. */
#ifndef MRF_EP_AGENT_INT_H
#define MRF_EP_AGENT_INT_H

#include "ep/agent.h"

/* --- agent_calls: agent thread, no lock held ------------------------------------------ */

/* Does what the peers want that were kicked. */
void mrf_agent_run_kicks(struct mrf_agent *agent);
/* Runs what other threads wait for; one of them may free an endpoint afterwards. */
void mrf_agent_run_commands(struct mrf_agent *agent);
/* Tells the peers when pins that were made on demand are gone. */
void mrf_agent_tell_peers(struct mrf_agent *agent);
/* Closes the connections to addresses that were removed, once they have nothing to do. */
void mrf_agent_let_go(struct mrf_agent *agent);

/* --- agent_calls: any thread ----------------------------------------------------------- */

/* The agent thread looks (again) at what others want. */
void mrf_agent_wake(struct mrf_agent *agent);
/* on: is told of pins that are gone. Off: is not, once this has returned. */
void mrf_agent_listen(struct mrf_agent *agent, bool on);

#endif

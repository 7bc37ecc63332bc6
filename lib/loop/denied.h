/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consequences of a change of credentials. The kernel accepts work requests, and
 * calls of rdma_cm, only with the credentials that opened the descriptor. After set*uid,
 * setgroups, capset and the like it answers EACCES for ever, either to the thread that
 * changed its credentials or to all threads. A work request refused in this way is
 * already in the queue that process and kernel share, and may still run. So it counts as
 * posted, and its connection is ended.
 *
 * If the agent's thread itself is refused, nothing can be saved: the agent gives up all
 * connections and closes rdma_cm, which tells the peers.
 */
#ifndef MRF_LOOP_DENIED_H
#define MRF_LOOP_DENIED_H

#include "loop/agent.h"

/* The text of operations that are not started for this reason. */
#define MRF_DENIED_TEXT                                                           \
	"the kernel takes no work requests from this process (or thread), whose " \
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

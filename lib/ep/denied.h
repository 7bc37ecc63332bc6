/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows a change of credentials. The kernel takes work requests, and whatever is
 * asked of rdma_cm, only from the credentials that opened the descriptor; after set*uid,
 * setgroups, capset and the like it answers EACCES for ever, to the thread that changed
 * its own or to all. A work request that is refused so lies in the queue, which process
 * and kernel share, and may yet run. So it counts as posted, and its connection ends.
 *
 * When it is the agent's thread that is refused nothing can be saved: it lets go of
 * rdma_cm, which tells the peers, and of all connections.
 */
#ifndef MRF_EP_DENIED_H
#define MRF_EP_DENIED_H

#include "ep/agent.h"

/* Why nothing is begun. */
#define MRF_DENIED_TEXT                                                                        \
	"the kernel takes no work requests from this process (or thread), whose "              \
	"credentials have changed since it opened the domain: nothing was done"

/*
 * The kernel refused something of the agent's own: says so, once. Whether it refuses it
 * everything is found out as soon as no lock is held. Agent thread.
 */
void mrf_agent_suspect(struct mrf_agent *agent);
/* rdma_cm is lost. Agent thread, no lock held. */
void mrf_agent_denied(struct mrf_agent *agent);

/* Says that nothing can be opened any more for that reason: -FI_EACCES. */
int mrf_agent_refuse(void);

#endif

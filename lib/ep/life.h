/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to an endpoint in the agent: it is opened, served, closed. */
#ifndef MRF_EP_LIFE_H
#define MRF_EP_LIFE_H

#include "ep/agent.h"

/* What the agent of a domain does for its endpoints. */
extern const struct mrf_agent_guest mrf_life_guest;

/* Binds and later listens, in the agent thread; each returns when it is done. */
int mrf_agent_ep_open(struct mrf_agent *agent, struct mrf_ep *ep);
int mrf_agent_ep_enable(struct mrf_agent *agent, struct mrf_ep *ep);
/* Takes down all connections of ep, both ways. No callback for ep afterwards. */
void mrf_agent_ep_close(struct mrf_agent *agent, struct mrf_ep *ep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an endpoint in the agent: opening, serving, closing. */
#ifndef MRF_EP_LIFE_H
#define MRF_EP_LIFE_H

#include "ep/model/ep.h"

/* The calls from a domain's agent on behalf of its endpoints. */
extern const struct mrf_agent_guest mrf_life_guest;

/*
 * Bind the endpoint's address, and later listen there, in the agent thread; each returns
 * when that is done.
 */
int mrf_life_open(struct mrf_agent *agent, struct mrf_ep *ep);
int mrf_life_enable(struct mrf_agent *agent, struct mrf_ep *ep);
/*
 * Takes down all connections of ep, active and passive. No callback for ep comes
 * afterwards.
 */
void mrf_life_close(struct mrf_agent *agent, struct mrf_ep *ep);

#endif

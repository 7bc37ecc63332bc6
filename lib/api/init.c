/* SPDX-License-Identifier: BSD-2-Clause */
/* Ties the layers together that must not know each other: the domain opens endpoints. */
#include "domain/domain.h"
#include "ep/agent.h"
#include "ep/ep.h"

__attribute__((constructor)) static void init(void)
{
	mrf_domain_up = (struct mrf_domain_up){ mrf_ep_open, mrf_agent_stop };
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the endpoints of a domain share: their agent, and what peers do to all of them. */
#ifndef MRF_EP_EPS_H
#define MRF_EP_EPS_H

#include "ep/model/ep.h"

/*
 * The domain's agent, which starts with the first endpoint and stops with the domain. Any
 * thread, no lock held. Each failure is logged: -FI_ENOMEM, or an error of the kernel's.
 */
int mrf_eps_get(struct mrf_domain *domain, struct mrf_agent **agent);
/* What its cache of local buffers has done. Any thread. */
void mrf_eps_cache_stats(struct mrf_eps *eps, struct fi_mrfab_cache_stats *stats);
/* Stops the agent. No endpoint may be left. */
void mrf_eps_close(struct mrf_eps *eps);

#endif

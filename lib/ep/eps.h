/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoints of a domain: what they share, which is their agent and what peers do to all of
 * them, and the life of each in the agent: opening, serving, closing.
 */
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

/*
 * Bind the endpoint's address, and later listen there, in the agent thread; each returns
 * when that is done.
 */
int mrf_eps_add(struct mrf_ep *ep);
int mrf_eps_listen(struct mrf_ep *ep);
/*
 * Binds another address instead; the endpoint does not listen yet. It keeps the old one if that fails:
 * an error of the kernel's.
 */
int mrf_eps_move(struct mrf_ep *ep, const union mrf_addr *addr);
/*
 * The endpoint closes: waits until the messages that it has sent have arrived, up to
 * FI_MRFAB_LINGER. Programs send their last message and close. Then peers are told which of their
 * messages have come (msg/farewell.h). No lock is held.
 */
void mrf_eps_linger(struct mrf_ep *ep);
/*
 * Takes down all connections of ep, active and passive. No callback for ep comes
 * afterwards.
 */
void mrf_eps_remove(struct mrf_ep *ep);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device tells of itself, and what follows when it is removed. Agent thread.
 *
 * A removed device goes on for those that have it open, but its connections end, nobody reaches
 * its listeners, and it never comes back to this domain, even if one of the same name is made:
 * operations fail, and say that the domain has to be opened again.
 */
#ifndef MRF_EP_DEVICE_H
#define MRF_EP_DEVICE_H

#include "ep/agent.h"

/* Takes in what the device has to tell; no lock held. */
void mrf_agent_device_event(struct mrf_agent *agent);
/* The device was removed: says so, once. */
void mrf_agent_gone(struct mrf_agent *agent);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the device itself, and its removal. Agent thread.
 *
 * A removed device keeps working for processes that have it open, but its connections
 * end, no peer reaches its listeners, and it never comes back to this domain, even if one
 * of the same name is made: operations fail with a text that says that the domain has to
 * be opened again.
 */
#ifndef MRF_LOOP_DEVICE_H
#define MRF_LOOP_DEVICE_H

#include "loop/agent.h"

/* Handles the device's events; no lock held. */
void mrf_agent_device_event(struct mrf_agent *agent);
/* The device was removed: logs that, once. */
void mrf_agent_gone(struct mrf_agent *agent);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor's life: monitor.h, which includes this. The first client starts the monitor,
 * and removing the last one stops it; the hooks stay.
 */
#ifndef MRF_MONITOR_LIFE_H
#define MRF_MONITOR_LIFE_H

struct mrf_monitor_client;

/* The lock is not held. A client has to end its watches before it is removed. */
void mrf_monitor_add(struct mrf_monitor_client *client);
void mrf_monitor_remove(struct mrf_monitor_client *client);

#endif

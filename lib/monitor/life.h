/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor's life: monitor.h, which includes this. The first client starts the monitor,
 * and removing the last one stops it; the hooks stay.
 */
#ifndef MRF_MONITOR_LIFE_H
#define MRF_MONITOR_LIFE_H

#include <stdatomic.h>
#include "base/compiler.h"

struct fi_ops;
struct fi_ops_mem_notify;
struct fid_mem_monitor;
struct mrf_monitor_client;

/* The lock is not held. A client has to end its watches before it is removed. */
void mrf_monitor_add(struct mrf_monitor_client *client);
void mrf_monitor_remove(struct mrf_monitor_client *client);

extern __attribute__((visibility("hidden"))) atomic_bool mrf_monitor_hooked;
void mrf_monitor_hook_first(void);
/*
 * Installs the hooks, if FI_MR_CACHE_MONITOR has any, before there is a client: copies from
 * and to memory that hooks watch over cost less (base/known.h). No lock is held.
 */
static inline void mrf_monitor_hook(void)
{
	if (mrf_unlikely(!atomic_load_explicit(&mrf_monitor_hooked, memory_order_relaxed)))
		mrf_monitor_hook_first();
}

/*
 * The application's monitor takes the place of the library's, and gets these operations. No
 * lock is held. -FI_EALREADY: there is one; -FI_EBUSY: the library's own has clients.
 */
int mrf_monitor_adopt(struct fid_mem_monitor *monitor, struct fi_ops_mem_notify *notify,
		      struct fi_ops *ops);
/*
 * Makes the clients drop all that they watch, if there are any, and puts the library's own
 * monitor back. -FI_EINVAL: this one was not adopted, or not by this process.
 */
int mrf_monitor_disown(struct fid_mem_monitor *monitor);

#endif

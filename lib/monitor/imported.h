/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's own memory monitor, while it is lent to the library (monitor/import.h): at
 * most one per process. The library calls it by these functions. It may notify from inside its
 * own hook of munmap, and so under locks of its own, which these calls may need: none of them
 * is made under a lock of the library's, except the one that guards starting and stopping.
 *
 * A call that is under way keeps the monitor: mrf_imported_end waits for it. Any thread.
 */
#ifndef MRF_MONITOR_IMPORTED_H
#define MRF_MONITOR_IMPORTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_ext.h>

/* A range that the application's monitor was told to watch. All 0: none. */
struct mrf_subscription {
	uintptr_t start;
	size_t len;
	uint64_t import; /* number of the import */
};

extern struct fid_mem_monitor *_Atomic mrf_imported_monitor;

void mrf_imported_begin(struct fid_mem_monitor *monitor);
/* No call begins after this one, which waits for those that are under way. */
void mrf_imported_end(void);
static inline bool mrf_imported(void)
{
	return atomic_load_explicit(&mrf_imported_monitor, memory_order_relaxed);
}
/* Forgets it, in a forked child. */
void mrf_imported_in_child(void);

/* Return the monitor's result: 0 or -FI_E*. */
int mrf_imported_start(void);
void mrf_imported_stop(void);
/*
 * Has the range watched, in place of the one that sub was before. True: the monitor will report
 * changes, or none is imported.
 */
bool mrf_subscribe(struct mrf_subscription *sub, uintptr_t start, size_t len);
/* Harmless if there is nothing to end. */
void mrf_unsubscribe(struct mrf_subscription *sub);
/* Is the range still what it was when it was subscribed? Also true if none is imported. */
bool mrf_subscription_valid(const struct mrf_subscription *sub);

#endif

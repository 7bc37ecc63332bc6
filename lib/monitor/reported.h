/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/monitor: the memory whose changes userfaultfd reports, for watches, as ground
 * (ground.h), and of discarded ranges (discard.h). The monitor's lock is held.
 */
#ifndef MRF_MONITOR_REPORTED_H
#define MRF_MONITOR_REPORTED_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_uffd_event;
struct mrf_watch;

/*
 * Has changes of the range of a watch reported. Errors as mrf_monitor_watch_locked, and *upto then
 * says how far the range may be registered.
 */
int mrf_reported_add_locked(struct mrf_watch *watch, uintptr_t *upto);
/* Unregisters the parts of [start, end) that are neither watched nor ground. */
void mrf_reported_release_locked(uintptr_t start, uintptr_t end);
/* The memory changes, and nothing in it is watched any more: ends its ground. */
void mrf_reported_change_locked(uintptr_t start, uintptr_t end);
/* The same, as an event says; remembers discards. */
void mrf_reported_event_locked(const struct mrf_uffd_event *event);
/* Was any of the range discarded? Then it is registered after a while, to hear of its unmapping. */
bool mrf_reported_discarded_locked(uintptr_t start, uintptr_t end);
/* Gives back ground that has no watch. */
void mrf_reported_trim_locked(void);
/* Unregisters everything; watches stay. */
void mrf_reported_end_locked(void);

/* Without the lock, while nothing is registered. */
void mrf_reported_clear(void);

#endif

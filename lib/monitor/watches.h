/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/monitor: the watches, by address. "The lock" is the monitor's.
 */
#ifndef MRF_MONITOR_WATCHES_H
#define MRF_MONITOR_WATCHES_H

#include <stdbool.h>
#include <stdint.h>
#include "monitor/monitor.h"

static inline uintptr_t mrf_watch_end(const struct mrf_watch *watch)
{
	return watch->start + watch->len;
}

/*
 * May a change of [start, end) concern a watch, or ground? Takes no lock and makes no system
 * call, so that a change of memory that nobody watches costs a few reads, however much is
 * watched elsewhere.
 */
bool mrf_watches_touch(uintptr_t start, uintptr_t end);

/* --- the lock is held ----------------------------------------------------------------- */

/* The first watch that overlaps, and the one after it; NULL: there is none. */
struct mrf_watch *mrf_watches_first_locked(uintptr_t start, uintptr_t end);
struct mrf_watch *mrf_watches_next_locked(const struct mrf_watch *watch, uintptr_t start,
					  uintptr_t end);
/* A watch that is added lies outside of ground until it is said to lie in it. */
void mrf_watches_add_locked(struct mrf_watch *watch);
void mrf_watches_remove_locked(struct mrf_watch *watch);
/* All of the watch is registered as ground, for as long as there is ground. */
void mrf_watches_in_ground_locked(struct mrf_watch *watch);
/* The watch is registered for itself, and stays so when ground around it is taken away. */
void mrf_watches_alone_locked(struct mrf_watch *watch);
/* How many watches are registered for themselves. */
unsigned long mrf_watches_pieces_locked(void);
/*
 * Ground that watches may lie in is going, until the second call: hooks look for watches
 * meanwhile, even where they find no ground.
 */
void mrf_watches_lose_ground_locked(void);
void mrf_watches_lost_ground_locked(void);
/* Calls drop, which removes it, for each watch whose client is not local. */
void mrf_watches_each_of_peers_locked(void (*drop)(struct mrf_watch *watch));

/* --- nothing is watched --------------------------------------------------------------- */

void mrf_watches_clear(void);
/* Forgets the watches of the parent, in a forked child. */
void mrf_watches_forget(void);

#endif

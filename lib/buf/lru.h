/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/buf: which entries of a cache are kept, by how recently they were used, and within
 * which limits. "The lock" is the monitor's.
 */
#ifndef MRF_BUF_LRU_H
#define MRF_BUF_LRU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "buf/entry.h"
#include "buf/gauge.h"

struct mrf_lru {
	uint64_t max_bytes; /* limits; constant */
	uint64_t max_count;
	_Atomic uint64_t clock;	 /* misses so far */
	struct mrf_list list;	 /* struct mrf_cached.lru, the oldest first; guarded by the lock */
	struct mrf_gauge *gauge; /* has the number of entries and bytes */
};

/* A transfer has begun to use the entry. Any thread, no lock. */
static inline void mrf_lru_hit(struct mrf_lru *lru, struct mrf_cached *entry)
{
	uint64_t now = atomic_load_explicit(&lru->clock, memory_order_relaxed);

	atomic_store_explicit(&entry->used, now, memory_order_relaxed);
	mrf_gauge_hit(lru->gauge);
}

/* --- the lock is held ----------------------------------------------------------------- */

void mrf_lru_add_locked(struct mrf_lru *lru, struct mrf_cached *entry);
void mrf_lru_del_locked(struct mrf_lru *lru, struct mrf_cached *entry);
/* Ends the least recently used entry, and adds its length to *bytes. False: all are in use. */
bool mrf_lru_evict_locked(struct mrf_lru *lru, uint64_t *bytes);
/* Ends entries until another one of len bytes keeps the limits. False: it cannot. */
bool mrf_lru_fit_locked(struct mrf_lru *lru, uint64_t len);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry of the cache of local buffers: a kernel MR over whole pages, without a remote
 * right, and who uses it.
 *
 * Transfers find entries without a lock, so an entry's memory stays an entry as long as
 * the cache lives: a thread may count itself as a user of an entry that has ended, sees
 * that it has, and takes itself off again. What has ended is kept by its users; the last
 * one lets the kernel MR go, exactly once. The kernel may keep that, or another thread may
 * be at it, when the cache is closed: the last entry that is given back frees all.
 */
#ifndef MRF_BUF_CACHE_ENTRY_H
#define MRF_BUF_CACHE_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/itree.h"
#include "base/list.h"
#include "base/lock.h"
#include "buf/gauge.h"
#include "mr/demand/pin.h"

struct mrf_cache;

/* Bits of struct mrf_cached.state; the users are counted above them. */
#define MRF_CACHED_ENDED 1u /* nobody may begin to use it */
#define MRF_CACHED_DEAD 2u  /* its kernel MR belongs to the thread that set this */
#define MRF_CACHED_USER 4u

struct mrf_cached {
	struct mrf_pin pin; /* addr, len and vmr are constant until it is dead */
	atomic_uint state;
	bool write; /* the device may write there; constant until it is dead */
	struct mrf_cache *cache;
	/* guarded by the monitor's lock */
	struct mrf_itree_node *node; /* in cache->tree, by address */
	struct mrf_list lru;	     /* kept: in cache->lru */
	uint64_t listed;	     /* `used` as it was when this place in the list was taken */
	_Atomic uint64_t used;	     /* cache->clock at its last use */
	struct mrf_cached *next;     /* spare */
};

#define MRF_CACHED_SLAB 32 /* entries */

struct mrf_cached_slab {
	struct mrf_cached_slab *next;
	struct mrf_cached entry[MRF_CACHED_SLAB];
};

/* Where entries come from and go to; they are freed with it. */
struct mrf_cached_pool {
	struct mrf_lock lock; /* rank CACHE: guards spare and slabs */
	struct mrf_cached *spare;
	struct mrf_cached_slab *slabs;
	atomic_uint out; /* entries that are not spare, and 1 until it is closed */
};

void mrf_cached_pool_init(struct mrf_cached_pool *pool);
/* No more entries are taken. True: all are back, and the caller ends it by mrf_cached_pool_fini. */
bool mrf_cached_pool_close(struct mrf_cached_pool *pool);
void mrf_cached_pool_fini(struct mrf_cached_pool *pool);
/*
 * An entry that is ENDED and DEAD, with a node and a watch that can be used; what else it
 * holds is left from its last use. NULL: no memory. No lock is held.
 */
struct mrf_cached *mrf_cached_new(struct mrf_cached_pool *pool, struct mrf_cache *cache,
				  struct mrf_monitor_client *client);
/* The entry is DEAD. True: it was the last one of a pool that is closed, as above. */
bool mrf_cached_give(struct mrf_cached_pool *pool, struct mrf_cached *entry);

/* From DEAD to kept, with the caller as its user. */
static inline void mrf_cached_begin(struct mrf_cached *entry)
{
	atomic_fetch_add(&entry->state, MRF_CACHED_USER);
	atomic_fetch_and(&entry->state, ~(MRF_CACHED_ENDED | MRF_CACHED_DEAD));
}

static inline struct mrf_cached *mrf_cached_of(struct mrf_pin *pin)
{
	return mrf_container_of(pin, struct mrf_cached, pin);
}

/* Takes off a user. True: the caller has to let the kernel MR go. */
static inline bool mrf_cached_leave(struct mrf_cached *entry)
{
	unsigned ended = MRF_CACHED_ENDED;

	if (mrf_likely(atomic_fetch_sub(&entry->state, MRF_CACHED_USER) !=
		       (MRF_CACHED_USER | MRF_CACHED_ENDED)))
		return false;
	return atomic_compare_exchange_strong(&entry->state, &ended,
					      MRF_CACHED_ENDED | MRF_CACHED_DEAD);
}

/* False: it has ended; the caller has to leave at once. */
static inline bool mrf_cached_enter(struct mrf_cached *entry)
{
	return !(atomic_fetch_add(&entry->state, MRF_CACHED_USER) & MRF_CACHED_ENDED);
}

/* Ends an entry. True: nobody uses it, and the caller has to let the kernel MR go. */
static inline bool mrf_cached_end(struct mrf_cached *entry)
{
	unsigned ended = MRF_CACHED_ENDED;

	atomic_fetch_or(&entry->state, MRF_CACHED_ENDED);
	return atomic_compare_exchange_strong(&entry->state, &ended,
					      MRF_CACHED_ENDED | MRF_CACHED_DEAD);
}

/* --- which are kept ------------------------------------------------------------------ */

/*
 * Which entries of a cache are kept, by how recently they were used, and within
 * which limits. "The lock" is the monitor's.
 */
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

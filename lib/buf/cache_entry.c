/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "buf/cache_entry.h"
#include "monitor/monitor.h"
#include "mr/demand/unpin.h"

void mrf_cached_pool_init(struct mrf_cached_pool *pool)
{
	mrf_lock_init(&pool->lock, MRF_RANK_CACHE);
	pool->spare = NULL;
	pool->slabs = NULL;
	atomic_init(&pool->out, 1);
}

bool mrf_cached_pool_close(struct mrf_cached_pool *pool)
{
	return atomic_fetch_sub(&pool->out, 1) == 1;
}

static void fini_entry(struct mrf_cached *entry)
{
	mrf_watch_fini(&entry->pin.watch);
	mrf_itree_node_free(entry->node);
}

void mrf_cached_pool_fini(struct mrf_cached_pool *pool)
{
	struct mrf_cached_slab *slab;
	unsigned i;

	while ((slab = pool->slabs)) {
		pool->slabs = slab->next;
		for (i = 0; i < MRF_CACHED_SLAB; i++)
			fini_entry(&slab->entry[i]);
		free(slab);
	}
	mrf_lock_fini(&pool->lock);
}

static bool init_entry(struct mrf_cached *entry, struct mrf_cache *cache,
		       struct mrf_monitor_client *client)
{
	entry->cache = cache;
	atomic_init(&entry->state, MRF_CACHED_ENDED | MRF_CACHED_DEAD);
	mrf_list_init(&entry->pin.node);
	mrf_list_init(&entry->pin.lease);
	mrf_list_init(&entry->pin.all);
	mrf_list_init(&entry->lru);
	if (mrf_watch_init(&entry->pin.watch, client))
		return false;
	entry->node = mrf_itree_node_new();
	if (!entry->node)
		mrf_watch_fini(&entry->pin.watch);
	return entry->node;
}

static struct mrf_cached_slab *entries_new(struct mrf_cache *cache,
					   struct mrf_monitor_client *client)
{
	struct mrf_cached_slab *slab = calloc(1, sizeof(*slab));
	unsigned i = 0;

	while (slab && i < MRF_CACHED_SLAB && init_entry(&slab->entry[i], cache, client))
		i++;
	if (!slab || i == MRF_CACHED_SLAB)
		return slab;
	while (i)
		fini_entry(&slab->entry[--i]);
	free(slab);
	return NULL;
}

static struct mrf_cached *take_spare(struct mrf_cached_pool *pool)
{
	struct mrf_cached *entry;

	mrf_lock_take(&pool->lock);
	entry = pool->spare;
	if (entry) {
		pool->spare = entry->next;
		atomic_fetch_add(&pool->out, 1);
	}
	mrf_lock_release(&pool->lock);
	return entry;
}

static void add_entries(struct mrf_cached_pool *pool, struct mrf_cached_slab *slab)
{
	unsigned i;

	for (i = 0; i + 1 < MRF_CACHED_SLAB; i++)
		slab->entry[i].next = &slab->entry[i + 1];
	mrf_lock_take(&pool->lock);
	slab->entry[i].next = pool->spare;
	pool->spare = slab->entry;
	slab->next = pool->slabs;
	pool->slabs = slab;
	mrf_lock_release(&pool->lock);
}

struct mrf_cached *mrf_cached_new(struct mrf_cached_pool *pool, struct mrf_cache *cache,
				  struct mrf_monitor_client *client)
{
	struct mrf_cached *entry;
	struct mrf_cached_slab *slab;

	while (!(entry = take_spare(pool))) {
		slab = entries_new(cache, client);
		if (!slab)
			return NULL;
		add_entries(pool, slab);
	}
	return entry;
}

bool mrf_cached_give(struct mrf_cached_pool *pool, struct mrf_cached *entry)
{
	mrf_lock_take(&pool->lock);
	entry->next = pool->spare;
	pool->spare = entry;
	mrf_lock_release(&pool->lock);
	return atomic_fetch_sub(&pool->out, 1) == 1;
}

/* --- which are kept ------------------------------------------------------------------ */

void mrf_lru_add_locked(struct mrf_lru *lru, struct mrf_cached *entry)
{
	mrf_monitor_held();
	mrf_gauge_add(&lru->gauge->entries, 1);
	mrf_gauge_add(&lru->gauge->bytes, entry->pin.len);
	entry->listed = atomic_load_explicit(&lru->clock, memory_order_relaxed);
	atomic_store_explicit(&entry->used, entry->listed, memory_order_relaxed);
	mrf_list_add_tail(&entry->lru, &lru->list);
}

void mrf_lru_del_locked(struct mrf_lru *lru, struct mrf_cached *entry)
{
	mrf_monitor_held();
	mrf_list_del(&entry->lru);
	mrf_gauge_add(&lru->gauge->entries, -1ull);
	mrf_gauge_add(&lru->gauge->bytes, -entry->pin.len);
}

static bool in_use(const struct mrf_cached *entry)
{
	return atomic_load(&entry->state) >= MRF_CACHED_USER;
}

/*
 * An entry goes to the end of the list when it is made, and again when it has come to the front
 * and was used meanwhile: so a hit need not touch the list. NULL: all are in use.
 */
static struct mrf_cached *oldest_locked(struct mrf_lru *lru)
{
	uint64_t n = 2 * mrf_gauge_get(&lru->gauge->entries), used;
	struct mrf_cached *entry;

	while (n--) {
		entry = mrf_list_entry(lru->list.next, struct mrf_cached, lru);
		used = atomic_load_explicit(&entry->used, memory_order_relaxed);
		if (used == entry->listed && !in_use(entry))
			return entry;
		entry->listed = used;
		mrf_list_del(&entry->lru);
		mrf_list_add_tail(&entry->lru, &lru->list);
	}
	return NULL;
}

bool mrf_lru_evict_locked(struct mrf_lru *lru, uint64_t *bytes)
{
	struct mrf_cached *entry = oldest_locked(lru);

	mrf_monitor_held();
	if (!entry)
		return false;
	*bytes += entry->pin.len;
	mrf_gauge_add(&lru->gauge->evictions, 1);
	mrf_pin_drop_locked(&entry->pin, false);
	return true;
}

bool mrf_lru_fit_locked(struct mrf_lru *lru, uint64_t len)
{
	uint64_t bytes = 0;

	mrf_monitor_held();
	if (len > lru->max_bytes || mrf_vmr_cut(0, len) < len)
		return false;
	while (mrf_gauge_get(&lru->gauge->entries) >= lru->max_count ||
	       mrf_gauge_get(&lru->gauge->bytes) > lru->max_bytes - len) {
		if (!mrf_lru_evict_locked(lru, &bytes))
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "buf/entry.h"

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

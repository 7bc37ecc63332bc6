/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/desc.h"

struct mrf_mr_pool *mrf_mr_pool_new(void)
{
	static atomic_uint pools;
	struct mrf_mr_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->tag = 1 + atomic_fetch_add(&pools, 1) % UINT16_MAX;
	return pool;
}

void mrf_mr_pool_free(struct mrf_mr_pool *pool)
{
	uint32_t i;

	for (i = 0; i < pool->used; i++)
		free(mrf_desc_chunk(pool, i)[i % MRF_MR_CHUNK].raw);
	for (i = 0; i < MRF_MR_CHUNKS && pool->chunk[i]; i++) {
		mrf_ledger_unmap(pool->chunk[i]->entry, MRF_MR_CHUNK);
		free(pool->chunk[i]);
	}
	free(pool);
}

/* Regions that were never used, with their entries of the ledger. NULL: no memory. */
static struct mrf_mr *new_chunk_locked(struct mrf_mr_space *space)
{
	struct mrf_mr_pool *pool = space->pool;
	struct mrf_mr *mr = calloc(MRF_MR_CHUNK, sizeof(*mr));

	mrf_lock_held(&space->lock);
	if (!mr)
		return NULL;
	mr->entry = mrf_ledger_map(&space->ledger, pool->used, MRF_MR_CHUNK);
	if (!mr->entry) {
		free(mr);
		return NULL;
	}
	/* Set before the region can be found: 0 leads to the first of all. */
	atomic_init(&mr->live, mrf_mr_dead_word(pool, 0, pool->used));
	atomic_store_explicit(&pool->chunk[pool->used / MRF_MR_CHUNK], mr, memory_order_release);
	return mr;
}

struct mrf_mr *mrf_mr_pool_extend_locked(struct mrf_mr_space *space)
{
	struct mrf_mr_pool *pool = space->pool;
	struct mrf_mr *mr;
	struct mrf_ledger_entry *entries;

	mrf_lock_held(&space->lock);
	if (pool->used > MRF_DESC_INDEX_MASK)
		return NULL;
	mr = mrf_desc_chunk(pool, pool->used);
	if (!mr)
		mr = new_chunk_locked(space);
	if (!mr)
		return NULL;
	entries = mr->entry;
	mr += pool->used % MRF_MR_CHUNK;
	mr->entry = entries + pool->used % MRF_MR_CHUNK;
	mr->index = pool->used++;
	atomic_store_explicit(&mr->live, mrf_mr_dead_word(pool, 0, mr->index),
			      memory_order_relaxed);
	return mr;
}

/* --- descriptors -------------------------------------------------------------------- */

static void copy_region(const struct mrf_mr *mr, struct mrf_desc *out)
{
	out->access = MRF_MR_GET(mr->access);
	out->nseg = MRF_MR_GET(mr->nseg);
	out->segs = MRF_MR_GET(mr->segs);
	if (out->nseg == 1)
		out->segs = NULL;
	out->seg.addr = MRF_MR_GET(mr->seg.addr);
	out->seg.len = MRF_MR_GET(mr->seg.len);
	out->seg.iova = MRF_MR_GET(mr->seg.iova);
	out->seg.rkey = MRF_MR_GET(mr->seg.rkey);
	out->seg.lkey = MRF_MR_GET(mr->seg.lkey);
}

bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc, struct mrf_desc *out)
{
	const struct mrf_mr *mr = mrf_desc_find(space->pool, desc);

	if (!mr)
		return false;
	copy_region(mr, out);
	return mrf_desc_still(mr, desc);
}

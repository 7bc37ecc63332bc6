/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "mr/pool.h"
#include "mr/region.h"

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
	for (i = 0; i < MRF_MR_CHUNKS && pool->chunk[i]; i++)
		free(pool->chunk[i]);
	free(pool);
}

struct mrf_mr *mrf_mr_pool_extend_locked(struct mrf_mr_space *space)
{
	struct mrf_mr_pool *pool = space->pool;
	struct mrf_mr *mr;

	mrf_lock_held(&space->lock);
	if (pool->used > MRF_DESC_INDEX_MASK)
		return NULL;
	mr = mrf_desc_chunk(pool, pool->used);
	if (!mr) {
		mr = calloc(MRF_MR_CHUNK, sizeof(*mr));
		if (!mr)
			return NULL;
		/* Set before the region can be found: 0 leads to the first of all. */
		atomic_init(&mr->live, mrf_mr_dead_word(pool, 0, pool->used));
		atomic_store_explicit(&pool->chunk[pool->used / MRF_MR_CHUNK], mr,
				      memory_order_release);
	}
	mr += pool->used % MRF_MR_CHUNK;
	mr->index = pool->used++;
	atomic_store_explicit(&mr->live, mrf_mr_dead_word(pool, 0, mr->index),
			      memory_order_relaxed);
	return mr;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "mr/mr_pool.h"

static struct mrf_mr *chunk_at(const struct mrf_mr_pool *pool, uint32_t index)
{
	return atomic_load_explicit(&pool->chunk[index / MRF_MR_CHUNK],
				    memory_order_acquire);
}

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
	unsigned i;

	for (i = 0; i < MRF_MR_CHUNKS && pool->chunk[i]; i++)
		free(pool->chunk[i]);
	free(pool);
}

struct mrf_mr *mrf_mr_pool_extend(struct mrf_mr_pool *pool)
{
	struct mrf_mr *mr;

	if (pool->used > MRF_DESC_INDEX_MASK)
		return NULL;
	mr = chunk_at(pool, pool->used);
	if (!mr) {
		mr = calloc(MRF_MR_CHUNK, sizeof(*mr));
		if (!mr)
			return NULL;
		atomic_store_explicit(&pool->chunk[pool->used / MRF_MR_CHUNK], mr,
				      memory_order_release);
	}
	mr += pool->used % MRF_MR_CHUNK;
	mr->index = pool->used++;
	return mr;
}

static void copy(const struct mrf_mr *mr, struct mrf_desc *out)
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

/* The region of a descriptor that is live at this moment, and the state that it had. */
static inline const struct mrf_mr *find_live(const struct mrf_mr_pool *pool, uintptr_t value,
					     uint32_t *live)
{
	uint32_t index = value & MRF_DESC_INDEX_MASK;
	const struct mrf_mr *mr;

	if (mrf_unlikely(value >> MRF_DESC_TAG_SHIFT != pool->tag))
		return NULL;
	mr = chunk_at(pool, index);
	if (mrf_unlikely(!mr))
		return NULL;
	mr += index % MRF_MR_CHUNK;
	*live = (uint32_t)(value >> MRF_DESC_GEN_SHIFT & MRF_DESC_GEN_MAX) << 1 | 1;
	if (mrf_unlikely(atomic_load_explicit(&mr->live, memory_order_acquire) != *live))
		return NULL;
	return mr;
}

bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc,
		  struct mrf_desc *out)
{
	uint32_t live;
	const struct mrf_mr *mr = find_live(space->pool, (uintptr_t)desc, &live);

	if (!mr)
		return false;
	copy(mr, out);
	return atomic_load_explicit(&mr->live, memory_order_relaxed) == live;
}

bool mrf_desc_live(const struct mrf_mr_space *space, const void *desc)
{
	uint32_t live;

	return find_live(space->pool, (uintptr_t)desc, &live);
}

bool mrf_desc_local(const struct mrf_mr_space *space, const void *desc, uint64_t right,
		    uint64_t addr, uint64_t len, uint64_t *iova, uint32_t *lkey)
{
	uint32_t live;
	const struct mrf_mr *mr = find_live(space->pool, (uintptr_t)desc, &live);
	uint64_t start;

	if (mrf_unlikely(!mr || MRF_MR_GET(mr->nseg) != 1 || !(MRF_MR_GET(mr->access) & right)))
		return false;
	start = MRF_MR_GET(mr->seg.addr);
	if (mrf_unlikely(!mrf_range_inside(addr, len, start, MRF_MR_GET(mr->seg.len))))
		return false;
	*iova = MRF_MR_GET(mr->seg.iova) + (addr - start);
	*lkey = MRF_MR_GET(mr->seg.lkey);
	return *lkey && atomic_load_explicit(&mr->live, memory_order_relaxed) == live;
}

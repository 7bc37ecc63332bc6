/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
#include "buf/stage_ring.h"
#include "mr/demand/backs.h"

void mrf_stage_pool_init(struct mrf_stage_pool *pool, unsigned most)
{
	mrf_lock_init(&pool->lock, MRF_RANK_BOUNCE);
	mrf_list_init(&pool->free);
	pool->used = 0;
	pool->most = most;
}

void mrf_stage_pool_fini(struct mrf_stage_pool *pool)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&pool->free))) {
		struct mrf_stage_ring *ring = mrf_list_entry(node, struct mrf_stage_ring, node);

		mrf_vmr_drop(&ring->mr);
		free(ring->memory);
		free(ring);
	}
	mrf_lock_fini(&pool->lock);
}

/* NULL: no memory, or it cannot be registered. */
static struct mrf_stage_ring *make_ring(struct mrf_vpd *pd)
{
	struct mrf_stage_ring *ring = calloc(1, sizeof(*ring));

	if (!ring || posix_memalign(&ring->memory, mrf_page_size(), MRF_STAGE_RING))
		goto err_ring;
	if (mrf_room_reg(pd, ring->memory, MRF_STAGE_RING, (uintptr_t)ring->memory,
			 MRF_RIGHT_LOCAL_WRITE, &ring->mr))
		goto err_memory;
	mrf_list_init(&ring->node);
	return ring;

err_memory:
	free(ring->memory);
err_ring:
	free(ring);
	return NULL;
}

/* False: so many are used already. *ring: one that is free; NULL: it has to be made. */
static bool count_one(struct mrf_stage_pool *pool, struct mrf_stage_ring **ring)
{
	struct mrf_list *node = NULL;
	bool may;

	mrf_lock_take(&pool->lock);
	may = pool->used < pool->most;
	if (may) {
		pool->used++;
		node = mrf_list_pop(&pool->free);
	}
	mrf_lock_release(&pool->lock);
	*ring = node ? mrf_list_entry(node, struct mrf_stage_ring, node) : NULL;
	return may;
}

/* True: others are used. */
static bool uncount_one(struct mrf_stage_pool *pool)
{
	bool others;

	mrf_lock_take(&pool->lock);
	others = --pool->used;
	mrf_lock_release(&pool->lock);
	return others;
}

int mrf_stage_ring_take(struct mrf_stage_pool *pool, struct mrf_vpd *pd,
			struct mrf_stage_ring **ring)
{
	char why[MRF_PAGE_TEXT];

	if (!count_one(pool, ring))
		return -FI_EAGAIN;
	if (!*ring)
		*ring = make_ring(pd);
	if (*ring)
		return 0;
	if (uncount_one(pool))
		return -FI_EAGAIN;
	mrf_page_explain_memlock(MRF_STAGE_RING, why, sizeof(why));
	return mrf_refuse(FI_ENOMEM, FI_LOG_EP_DATA, 4160,
			  "%lu bytes through which device memory is copied cannot be pinned: %s",
			  MRF_STAGE_RING, why);
}

struct mrf_stage_ring *mrf_stage_ring_try(struct mrf_stage_pool *pool)
{
	struct mrf_list *node;

	mrf_lock_take(&pool->lock);
	node = pool->used < pool->most ? mrf_list_pop(&pool->free) : NULL;
	pool->used += !!node;
	mrf_lock_release(&pool->lock);
	return node ? mrf_list_entry(node, struct mrf_stage_ring, node) : NULL;
}

bool mrf_stage_ring_is_used(struct mrf_stage_pool *pool)
{
	bool used;

	mrf_lock_take(&pool->lock);
	used = pool->used;
	mrf_lock_release(&pool->lock);
	return used;
}

void mrf_stage_ring_give(struct mrf_stage_pool *pool, struct mrf_stage_ring *ring)
{
	mrf_lock_take(&pool->lock);
	mrf_list_add_head(&ring->node, &pool->free);
	pool->used--;
	mrf_lock_release(&pool->lock);
}

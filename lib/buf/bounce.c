/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/page.h"
#include "buf/bounce.h"
#include "mr/demand/backs.h"

#define SLAB_SLOTS 32
#define MAX_SLABS 8

struct slab {
	struct mrf_list node;
	struct mrf_vmr mr;
	void *memory;
};

/* Behind the data of a slot, so that the data stays page-aligned. */
struct slot {
	char data[MRF_BOUNCE_SIZE];
	struct slab *slab;
	struct slot *next;
};

void mrf_bounce_init(struct mrf_bounce_pool *pool, struct mrf_vpd *pd)
{
	mrf_lock_init(&pool->lock, MRF_RANK_BOUNCE);
	mrf_list_init(&pool->slabs);
	pool->pd = pd;
	pool->free = NULL;
	pool->nslabs = 0;
}

void mrf_bounce_fini(struct mrf_bounce_pool *pool)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&pool->slabs))) {
		struct slab *slab = mrf_list_entry(node, struct slab, node);

		mrf_vmr_drop(&slab->mr);
		free(slab->memory);
		free(slab);
	}
	mrf_lock_fini(&pool->lock);
}

/* NULL: no memory, or it cannot be registered. */
static struct slab *slab_new(struct mrf_vpd *pd)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (!slab ||
	    posix_memalign(&slab->memory, mrf_page_size(), SLAB_SLOTS * sizeof(struct slot)))
		goto err_free;
	if (mrf_room_reg(pd, slab->memory, SLAB_SLOTS * sizeof(struct slot),
			 (uintptr_t)slab->memory, MRF_RIGHT_LOCAL_WRITE, &slab->mr))
		goto err_memory;
	return slab;

err_memory:
	free(slab->memory);
err_free:
	free(slab);
	return NULL;
}

static void add_slab_locked(struct mrf_bounce_pool *pool, struct slab *slab)
{
	struct slot *slots = slab->memory;
	int i;

	mrf_lock_held(&pool->lock);
	for (i = 0; i < SLAB_SLOTS; i++) {
		slots[i].slab = slab;
		slots[i].next = pool->free;
		pool->free = &slots[i];
	}
	mrf_list_add_tail(&slab->node, &pool->slabs);
}

static struct slot *pop_slot_locked(struct mrf_bounce_pool *pool)
{
	struct slot *slot = pool->free;

	mrf_lock_held(&pool->lock);
	if (slot)
		pool->free = slot->next;
	return slot;
}

/* Registers more slots without the lock. */
static struct slot *take_bounce_slot(struct mrf_bounce_pool *pool)
{
	struct slab *slab = NULL;
	struct slot *slot;
	bool more;

	mrf_lock_take(&pool->lock);
	slot = pop_slot_locked(pool);
	more = !slot && pool->nslabs < MAX_SLABS;
	pool->nslabs += more;
	mrf_lock_release(&pool->lock);
	if (!more)
		return slot;
	slab = slab_new(pool->pd);
	mrf_lock_take(&pool->lock);
	if (slab)
		add_slab_locked(pool, slab);
	else
		pool->nslabs--;
	slot = pop_slot_locked(pool);
	mrf_lock_release(&pool->lock);
	return slot;
}

void *mrf_bounce_take(struct mrf_bounce_pool *pool, uint32_t *lkey)
{
	struct slot *slot = take_bounce_slot(pool);

	if (!slot)
		return NULL;
	*lkey = slot->slab->mr.lkey;
	return slot->data;
}

void *mrf_bounce_try(struct mrf_bounce_pool *pool, uint32_t *lkey)
{
	struct slot *slot;

	mrf_lock_take(&pool->lock);
	slot = pop_slot_locked(pool);
	mrf_lock_release(&pool->lock);
	if (!slot)
		return NULL;
	*lkey = slot->slab->mr.lkey;
	return slot->data;
}

void mrf_bounce_give(struct mrf_bounce_pool *pool, void *data)
{
	struct slot *slot = data;

	mrf_lock_take(&pool->lock);
	slot->next = pool->free;
	pool->free = slot;
	mrf_lock_release(&pool->lock);
}

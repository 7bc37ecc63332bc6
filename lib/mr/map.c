/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "mr/map.h"

#define NONE MRF_MAP_SLOTS
#define TAG_PREFIX 0xc0000000u

struct mrf_map *mrf_map_new(uint64_t seed)
{
	struct mrf_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->tag = TAG_PREFIX | (uint32_t)(seed >> 32);
	if (map->tag == UINT32_MAX)
		map->tag--; /* else it would have FI_KEY_NOTAVAIL */
	map->spare = NONE;
	mrf_lock_init(&map->lock, MRF_RANK_MR);
	return map;
}

/* NULL: nobody has been there yet. The caller holds map->lock or is alone. */
static struct mrf_map_slot *slot_at(struct mrf_map *map, uint32_t index)
{
	uint64_t key = (uint64_t)map->tag << MRF_MAP_TAG_SHIFT | index;

	return (struct mrf_map_slot *)mrf_map_slot(map, key);
}

static void drop(struct mrf_map_slot *slot, struct mrf_rawkey *raw)
{
	if (mrf_unlikely(raw != (void *)slot->own))
		free(raw);
}

void mrf_map_free(struct mrf_map *map)
{
	uint32_t i;

	if (!map)
		return;
	for (i = 0; i < map->used; i++)
		drop(slot_at(map, i), slot_at(map, i)->raw);
	for (i = 0; i < MRF_MAP_CHUNKS; i++)
		free(map->chunk[i]);
	mrf_lock_fini(&map->lock);
	free(map);
}

/* Room for the slot that is the next to be used. */
static struct mrf_map_slot *extend(struct mrf_map *map)
{
	struct mrf_map_slot *slot = slot_at(map, map->used), *slots;
	unsigned n;

	if (slot)
		return slot;
	/* It is the first of its chunk: those before it have 2^n - 1 times FIRST. */
	n = (unsigned)__builtin_ctz(map->used / MRF_MAP_FIRST + 1);
	slots = calloc((size_t)MRF_MAP_FIRST << n, sizeof(*slots));
	if (slots)
		atomic_store_explicit(&map->chunk[n], slots, memory_order_release);
	return slots;
}

/* A slot that is not mapped. -FI_ENOMEM, -FI_ENOSPC. The caller holds map->lock. */
static int take_locked(struct mrf_map *map, uint32_t *index, struct mrf_map_slot **slot)
{
	if (mrf_likely(map->spare != NONE)) {
		*index = map->spare;
		*slot = slot_at(map, *index);
		map->spare = (*slot)->next;
		return 0;
	}
	if (map->used == MRF_MAP_SLOTS)
		return -FI_ENOSPC;
	*slot = extend(map);
	if (!*slot)
		return -FI_ENOMEM;
	*index = map->used++;
	return 0;
}

static uint64_t set_locked(struct mrf_map *map, struct mrf_map_slot *slot, uint32_t index,
			   struct mrf_rawkey *raw)
{
	uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);

	slot->raw = raw;
	atomic_store_explicit(&slot->state, state | 1, memory_order_release);
	map->count++;
	return (uint64_t)map->tag << MRF_MAP_TAG_SHIFT |
	       (uint64_t)(state >> 1) << MRF_MAP_INDEX_BITS | index;
}

int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key)
{
	struct mrf_rawkey *copy = NULL;
	size_t size = mrf_rawkey_stored(raw);
	struct mrf_map_slot *slot;
	uint32_t index;
	int ret;

	if (mrf_unlikely(size > MRF_MAP_OWN)) {
		copy = malloc(size);
		if (!copy)
			return -FI_ENOMEM;
		memcpy(copy, raw, size);
	}
	mrf_lock_take(&map->lock);
	ret = take_locked(map, &index, &slot);
	if (mrf_likely(!ret)) {
		if (mrf_likely(!copy)) {
			copy = (void *)slot->own;
			/* Of all that fit, so that it takes no loop. */
			memcpy(copy, raw, MRF_MAP_OWN);
		}
		*key = set_locked(map, slot, index, copy);
	}
	mrf_lock_release(&map->lock);
	if (mrf_unlikely(ret))
		free(copy);
	return ret;
}

/* Leaves the slot to the next one, unless its generations are used up. */
static struct mrf_rawkey *clear_locked(struct mrf_map *map, struct mrf_map_slot *slot,
				       uint64_t key)
{
	uint32_t index = (uint32_t)key & MRF_MAP_INDEX_MASK;
	struct mrf_rawkey *raw = slot->raw;
	uint32_t gen = mrf_map_gen(key) + 1;

	slot->raw = NULL;
	atomic_store_explicit(&slot->state, gen << 1, memory_order_release);
	if (gen <= MRF_MAP_GEN_MAX) {
		slot->next = map->spare;
		map->spare = index;
	}
	map->count--;
	return raw;
}

static bool is_live(const struct mrf_map_slot *slot, uint64_t key)
{
	return atomic_load_explicit(&slot->state, memory_order_relaxed) ==
	       (mrf_map_gen(key) << 1 | 1);
}

bool mrf_map_remove(struct mrf_map *map, uint64_t key)
{
	struct mrf_rawkey *raw = NULL;
	struct mrf_map_slot *slot;

	mrf_lock_take(&map->lock);
	/* Slots never move. */
	slot = (struct mrf_map_slot *)mrf_map_slot(map, key);
	if (mrf_likely(slot && is_live(slot, key)))
		raw = clear_locked(map, slot, key);
	mrf_lock_release(&map->lock);
	if (mrf_unlikely(!raw))
		return false;
	drop(slot, raw);
	return true;
}

bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out)
{
	const struct mrf_rawkey *raw;
	bool live;

	mrf_lock_take(&map->lock);
	live = mrf_map_live(map, key);
	if (live) {
		raw = mrf_map_slot(map, key)->raw;
		memcpy(out, raw, mrf_rawkey_stored(raw));
	}
	mrf_lock_release(&map->lock);
	return live;
}

/* The first that is mapped. There is one. */
static void name_one_locked(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw)
{
	const struct mrf_map_slot *slot;
	uint32_t i = 0;

	while (!(slot = slot_at(map, i))->raw)
		i++;
	*key = (uint64_t)map->tag << MRF_MAP_TAG_SHIFT |
	       (uint64_t)(atomic_load_explicit(&slot->state, memory_order_relaxed) >> 1)
		       << MRF_MAP_INDEX_BITS |
	       i;
	memcpy(raw, slot->raw, mrf_rawkey_stored(slot->raw));
}

uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw)
{
	uint32_t count;

	mrf_lock_take(&map->lock);
	count = map->count;
	if (count)
		name_one_locked(map, key, raw);
	mrf_lock_release(&map->lock);
	return count;
}

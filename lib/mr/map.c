/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "mr/map.h"

#define TAG_PREFIX 0xc0000000u

struct mrf_map *mrf_map_new(uint64_t seed)
{
	struct mrf_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->tag = TAG_PREFIX | (uint32_t)(seed >> 32);
	if (map->tag == UINT32_MAX)
		map->tag--; /* else it would have FI_KEY_NOTAVAIL */
	mrf_lock_init(&map->lock, MRF_RANK_MR);
	return map;
}

/* NULL: nobody has been there yet. The caller holds map->lock or is alone. */
static struct mrf_map_slot *slot_at(struct mrf_map *map, uint32_t index)
{
	uint64_t key = (uint64_t)map->tag << MRF_MAP_TAG_SHIFT | index;

	return (struct mrf_map_slot *)mrf_map_slot(map, key);
}

static bool is_mapped(const struct mrf_map_slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_relaxed) & 1;
}

void mrf_map_free(struct mrf_map *map)
{
	uint32_t i;

	if (!map)
		return;
	for (i = 0; i < map->used; i++) {
		if (is_mapped(slot_at(map, i)))
			free(slot_at(map, i)->raw);
	}
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
static int take_locked(struct mrf_map *map, struct mrf_map_slot **slot)
{
	if (map->spare) {
		*slot = map->spare;
		map->spare = (*slot)->next;
		return 0;
	}
	if (map->used == MRF_MAP_SLOTS)
		return -FI_ENOSPC;
	*slot = extend(map);
	if (!*slot)
		return -FI_ENOMEM;
	(*slot)->index = map->used++;
	return 0;
}

/* Of a raw key that does not fit into a slot. */
static int add_beside(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key)
{
	size_t size = mrf_rawkey_stored(raw);
	struct mrf_rawkey *copy = malloc(size);
	struct mrf_map_slot *slot;
	int ret;

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, raw, size);
	mrf_lock_take(&map->lock);
	ret = take_locked(map, &slot);
	if (!ret) {
		slot->raw = copy;
		*key = mrf_map_set_locked(map, slot);
	}
	mrf_lock_release(&map->lock);
	if (ret)
		free(copy);
	return ret;
}

int mrf_map_add_one(struct mrf_map *map, const struct mrf_rawkey_one *one, uint64_t *key)
{
	struct mrf_map_slot *slot;
	int ret;

	mrf_lock_take(&map->lock);
	ret = take_locked(map, &slot);
	if (!ret) {
		slot->raw = NULL;
		slot->one = *one;
		*key = mrf_map_set_locked(map, slot);
	}
	mrf_lock_release(&map->lock);
	return ret;
}

int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key)
{
	struct mrf_rawkey_one one;

	if (raw->nseg != 1)
		return add_beside(map, raw, key);
	mrf_rawkey_encode(raw, (uint8_t *)&one);
	return mrf_map_add_one(map, &one, key);
}

/* Leaves the slot to the next one, unless its generations are used up. */
static void clear_locked(struct mrf_map *map, struct mrf_map_slot *slot, uint32_t gen)
{
	atomic_store_explicit(&slot->state, gen << 1, memory_order_release);
	if (gen <= MRF_MAP_GEN_MAX) {
		slot->next = map->spare;
		map->spare = slot;
	}
	map->count--;
}

bool mrf_map_remove(struct mrf_map *map, uint64_t key)
{
	struct mrf_rawkey *raw = NULL;
	struct mrf_map_slot *slot;
	bool live;

	mrf_lock_take(&map->lock);
	live = mrf_map_live(map, key);
	if (live) {
		slot = slot_at(map, (uint32_t)key & MRF_MAP_INDEX_MASK);
		raw = slot->raw;
		clear_locked(map, slot, mrf_map_gen(key) + 1);
	}
	mrf_lock_release(&map->lock);
	free(raw);
	return live;
}

static void copy_locked(const struct mrf_map_slot *slot, struct mrf_rawkey *out)
{
	if (slot->raw)
		memcpy(out, slot->raw, mrf_rawkey_stored(slot->raw));
	else
		mrf_rawkey_one_expand(&slot->one, out);
}

bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out)
{
	bool live;

	mrf_lock_take(&map->lock);
	live = mrf_map_live(map, key);
	if (live)
		copy_locked(mrf_map_slot(map, key), out);
	mrf_lock_release(&map->lock);
	return live;
}

/* The first that is mapped. There is one. */
static void name_one_locked(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw)
{
	const struct mrf_map_slot *slot;
	uint32_t i = 0;

	while (!is_mapped(slot = slot_at(map, i)))
		i++;
	*key = (uint64_t)map->tag << MRF_MAP_TAG_SHIFT |
	       (uint64_t)(atomic_load_explicit(&slot->state, memory_order_relaxed) >> 1)
		       << MRF_MAP_INDEX_BITS |
	       i;
	copy_locked(slot, raw);
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

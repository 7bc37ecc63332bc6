/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/fi_errno.h>
#include "mr/map.h"

#define TAG_PREFIX 0xc0000000u

struct mrf_map *mrf_map_new(uint64_t seed)
{
	struct mrf_map *map = calloc(1, sizeof(*map));
	uint32_t tag = TAG_PREFIX | (uint32_t)(seed >> 32);

	if (!map)
		return NULL;
	if (tag == UINT32_MAX)
		tag--; /* else it would have FI_KEY_NOTAVAIL */
	map->tag = (uint64_t)tag << MRF_MAP_TAG_SHIFT;
	map->to_key = map->tag - 1;
	return map;
}

static bool is_mapped(const struct mrf_map_slot *slot)
{
	return atomic_load_explicit(&slot->name, memory_order_acquire) & MRF_MAP_MAPPED;
}

static bool is_beside(const struct mrf_map_slot *slot)
{
	return !slot->said.word[MRF_RAWKEY_SERIAL];
}

/* One that was used; by who has the list or is alone. */
static struct mrf_map_slot *slot_at(const struct mrf_map *map, uint32_t index)
{
	struct mrf_map_slot *slot;

	mrf_map_find(map, index, &slot);
	return slot;
}

void mrf_map_free(struct mrf_map *map)
{
	uint32_t i;

	if (!map)
		return;
	for (i = 0; i < map->used; i++) {
		struct mrf_map_slot *slot = slot_at(map, i);

		if (is_mapped(slot) && is_beside(slot))
			free(slot->raw);
	}
	for (i = 0; i < MRF_MAP_CHUNKS; i++)
		free(map->memory[i]);
	free(map);
}

bool mrf_map_was(const struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot;
	uint64_t name;

	if (!mrf_map_find(map, key, &slot) || !mrf_map_maybe(map, key))
		return false;
	name = atomic_load_explicit(&slot->name, memory_order_acquire);
	/* Without the tag, but with the bit above all generations. */
	if (name & MRF_MAP_MAPPED)
		name = (uint32_t)name;
	return mrf_map_gen(key) < name >> MRF_MAP_INDEX_BITS;
}

/* --- the list of spare slots ------------------------------------------------------ */

/* In looks at the head: what a holder on another processor needs. */
#define SPINS 100
/* Then, what one may need that has to get a processor first. */
#define YIELDS 10

/* Not only yields: the holder may have a lower priority. */
static void wait_a_little(unsigned tries)
{
	const struct timespec nap = { .tv_nsec = 20000 };

	if (tries < SPINS)
		return;
	if (tries < SPINS + YIELDS)
		sched_yield();
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

/* The list is the caller's. */
static struct mrf_map_slot *lock(struct mrf_map *map)
{
	struct mrf_map_slot *list;
	unsigned tries = 0;

	while ((list = mrf_map_try(map)) == MRF_MAP_BUSY) {
		/* No exchange while it is somebody's: the others would wait for the line. */
		while (atomic_load_explicit(&map->spare, memory_order_relaxed) ==
		       MRF_MAP_BUSY)
			wait_a_little(tries++);
	}
	return list;
}

/* The nth chunk, with each slot in one line of the cache. False: no memory. */
static bool add_chunk(struct mrf_map *map, unsigned n)
{
	const uintptr_t size = sizeof(struct mrf_map_slot);
	uintptr_t first;

	map->memory[n] = calloc(((size_t)MRF_MAP_FIRST << n) + 1, size);
	if (!map->memory[n])
		return false;
	first = ((uintptr_t)map->memory[n] + size - 1) / size * size;
	atomic_store_explicit(&map->chunk[MRF_MAP_FIRST_BITS + n],
			      first - (MRF_MAP_FIRST << n) * size, memory_order_release);
	return true;
}

/* So that nearly all that is mapped for the first time goes the short way, too. */
#define BATCH 16

_Static_assert(MRF_MAP_FIRST % BATCH == 0, "a batch is in one chunk");

/* A list of slots that were never used, by who has the list. -FI_ENOMEM, -FI_ENOSPC. */
static int extend(struct mrf_map *map, struct mrf_map_slot **list)
{
	/* It is the first of its chunk: those before it have 2^n - 1 times FIRST. */
	unsigned n = (unsigned)__builtin_ctz(map->used / MRF_MAP_FIRST + 1);
	struct mrf_map_slot *slot;
	uint32_t i;

	if (map->used == MRF_MAP_SLOTS)
		return -FI_ENOSPC;
	if (!mrf_map_find(map, map->used, &slot) && !add_chunk(map, n))
		return -FI_ENOMEM;
	*list = NULL;
	for (i = BATCH; i-- > 0;) {
		slot = slot_at(map, map->used + i);
		atomic_store_explicit(&slot->name, map->used + i + 1, memory_order_relaxed);
		slot->next = *list;
		*list = slot;
	}
	map->used += BATCH;
	return 0;
}

/* A slot that is the caller's. -FI_ENOMEM, -FI_ENOSPC. */
static int take_slot(struct mrf_map *map, struct mrf_map_slot **slot)
{
	struct mrf_map_slot *list = lock(map);
	int ret = 0;

	if (!list)
		list = atomic_exchange_explicit(&map->returned, NULL, memory_order_acquire);
	if (!list)
		ret = extend(map, &list);
	*slot = list;
	mrf_map_leave(map, list ? list->next : NULL);
	return ret;
}

/* --- mapping ---------------------------------------------------------------------- */

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
	ret = take_slot(map, &slot);
	if (ret) {
		free(copy);
		return ret;
	}
	slot->said.word[MRF_RAWKEY_SERIAL] = 0;
	slot->raw = copy;
	*key = mrf_map_publish(map, slot);
	return 0;
}

int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key)
{
	struct mrf_map_slot *slot;
	int ret;

	if (raw->nseg != 1)
		return add_beside(map, raw, key);
	ret = take_slot(map, &slot);
	if (ret)
		return ret;
	mrf_rawkey_one_say(raw, &slot->said);
	*key = mrf_map_publish(map, slot);
	return 0;
}

/* Called with the free list held; returns it with the slot, unless its generations are used up. */
static struct mrf_map_slot *clear(struct mrf_map_slot *list, struct mrf_map_slot *slot,
				  uint64_t key)
{
	uint64_t next = (uint64_t)(uint32_t)key + MRF_MAP_TO_NEXT;

	atomic_store_explicit(&slot->name, next, memory_order_release);
	if (next > UINT32_MAX)
		return list;
	slot->next = list;
	return slot;
}

bool mrf_map_remove(struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot, *list = lock(map);
	struct mrf_rawkey *raw = NULL;
	bool live = mrf_map_live(map, key);

	if (live) {
		slot = slot_at(map, (uint32_t)key & MRF_MAP_INDEX_MASK);
		raw = is_beside(slot) ? slot->raw : NULL;
		list = clear(list, slot, key);
	}
	mrf_map_leave(map, list);
	free(raw);
	return live;
}

/* --- looking ---------------------------------------------------------------------- */

/* Called with the free list held: the slot stays mapped, or at least as it is. */
static void copy_key(const struct mrf_map_slot *slot, struct mrf_rawkey *out)
{
	if (is_beside(slot))
		memcpy(out, slot->raw, mrf_rawkey_stored(slot->raw));
	else
		mrf_rawkey_one_expand(&slot->said, out);
}

bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out)
{
	struct mrf_map_slot *list = lock(map);
	bool live = mrf_map_live(map, key);

	if (live)
		copy_key(slot_at(map, (uint32_t)key & MRF_MAP_INDEX_MASK), out);
	mrf_map_leave(map, list);
	return live;
}

uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw)
{
	struct mrf_map_slot *list = lock(map);
	uint32_t i, count = 0;

	for (i = 0; i < map->used; i++) {
		const struct mrf_map_slot *slot = slot_at(map, i);

		if (!is_mapped(slot) || count++)
			continue;
		*key = atomic_load_explicit(&slot->name, memory_order_relaxed);
		copy_key(slot, raw);
	}
	mrf_map_leave(map, list);
	return count;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/idmap.h"

struct mrf_idmap_slot {
	uint64_t id;
	void *value; /* NULL: free */
};

#define FIRST_SLOTS 64

/*
 * Keys are often small and dense, or pointers, or differ only in their upper half: fold,
 * then spread (Fibonacci hashing). This costs a few instructions, and a registration does
 * it twice.
 */
static size_t home(const struct mrf_idmap *map, uint64_t id)
{
	id ^= id >> 32;
	return (id * 0x9e3779b97f4a7c15ull >> 32) & map->mask;
}

void mrf_idmap_init(struct mrf_idmap *map)
{
	map->slots = NULL;
	map->mask = 0;
	map->count = 0;
}

void mrf_idmap_fini(struct mrf_idmap *map)
{
	free(map->slots);
	mrf_idmap_init(map);
}

/* The slot that holds id, or the free slot where it would go. */
static struct mrf_idmap_slot *probe(const struct mrf_idmap *map, uint64_t id)
{
	size_t i = home(map, id);

	while (map->slots[i].value && map->slots[i].id != id)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

__attribute__((noinline)) static int grow(struct mrf_idmap *map)
{
	size_t n = map->slots ? (map->mask + 1) * 2 : FIRST_SLOTS;
	struct mrf_idmap bigger = { .mask = n - 1, .count = map->count };
	size_t i;

	bigger.slots = calloc(n, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -FI_ENOMEM;
	for (i = 0; map->slots && i <= map->mask; i++) {
		if (map->slots[i].value)
			*probe(&bigger, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	*map = bigger;
	return 0;
}

int mrf_idmap_insert(struct mrf_idmap *map, uint64_t id, void *value)
{
	struct mrf_idmap_slot *slot;
	int ret;

	/* Kept at most half full: probes stay short. An empty map has a mask of 0. */
	if (mrf_unlikely((map->count + 1) * 2 > map->mask + 1)) {
		ret = grow(map);
		if (ret)
			return ret;
	}
	slot = probe(map, id);
	if (slot->value)
		return -FI_EALREADY;
	slot->id = id;
	slot->value = value;
	map->count++;
	return 0;
}

void *mrf_idmap_find(const struct mrf_idmap *map, uint64_t id)
{
	return map->slots ? probe(map, id)->value : NULL;
}

void *mrf_idmap_remove(struct mrf_idmap *map, uint64_t id)
{
	struct mrf_idmap_slot *slot;
	size_t hole, i;
	void *value;

	if (!map->slots)
		return NULL;
	slot = probe(map, id);
	value = slot->value;
	if (!value)
		return NULL;
	/* Shift back what probing had pushed past the hole, so no tombstones are needed. */
	hole = (size_t)(slot - map->slots);
	for (i = (hole + 1) & map->mask; map->slots[i].value; i = (i + 1) & map->mask) {
		size_t want = home(map, map->slots[i].id);

		if (((i - want) & map->mask) >= ((i - hole) & map->mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].value = NULL;
	map->count--;
	return value;
}

void mrf_idmap_each(const struct mrf_idmap *map, void (*visit)(void *value, void *arg), void *arg)
{
	size_t i;

	for (i = 0; map->slots && i <= map->mask; i++) {
		if (map->slots[i].value)
			visit(map->slots[i].value, arg);
	}
}

void *mrf_idmap_sweep(const struct mrf_idmap *map, size_t *hand)
{
	void *value = NULL;

	while (map->count && !value) {
		*hand &= map->mask;
		value = map->slots[(*hand)++].value;
	}
	return value;
}

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
static size_t home(const struct mrf_idmap_table *table, uint64_t id)
{
	id ^= id >> 32;
	return (id * 0x9e3779b97f4a7c15ull >> 32) & table->mask;
}

void mrf_idmap_init(struct mrf_idmap *map)
{
	*map = (struct mrf_idmap){ .moved = 0 };
}

void mrf_idmap_fini(struct mrf_idmap *map)
{
	free(map->table.slots);
	free(map->old.slots);
	mrf_idmap_init(map);
}

/* The slot that holds id, or the free slot where it would go. */
static struct mrf_idmap_slot *probe(const struct mrf_idmap_table *table, uint64_t id)
{
	size_t i = home(table, id);

	while (table->slots[i].value && table->slots[i].id != id)
		i = (i + 1) & table->mask;
	return &table->slots[i];
}

/* --- growing ---------------------------------------------------------------------------- */

/*
 * A table that is half full has one value for two slots, and the next one takes as many again: this
 * is more than enough to have moved all by then.
 */
#define MOVES 8

/*
 * Moves whole runs of values: what is left can be found without them, because a run has all that
 * probing from its first slot on meets. moved is the first slot of a run, or free.
 */
static __attribute__((noinline)) void move_some(struct mrf_idmap *map)
{
	struct mrf_idmap_table *old = &map->old;
	unsigned i = 0;

	while (map->left) {
		struct mrf_idmap_slot *slot = &old->slots[map->moved & old->mask];

		if (!slot->value && i >= MOVES)
			return;
		map->moved++;
		i++;
		if (!slot->value)
			continue;
		*probe(&map->table, slot->id) = *slot;
		slot->value = NULL;
		map->left--;
	}
	free(old->slots);
	old->slots = NULL;
}

static __attribute__((noinline)) int grow(struct mrf_idmap *map)
{
	size_t n = map->table.slots ? (map->table.mask + 1) * 2 : FIRST_SLOTS;
	struct mrf_idmap_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -FI_ENOMEM;
	map->old = map->table;
	map->left = map->count;
	map->table = (struct mrf_idmap_table){ .slots = slots, .mask = n - 1 };
	map->moved = 0;
	while (map->left && map->old.slots[map->moved].value)
		map->moved++;
	return 0;
}

/* --- the calls --------------------------------------------------------------------------- */

int mrf_idmap_insert(struct mrf_idmap *map, uint64_t id, void *value)
{
	struct mrf_idmap_table *table = &map->table;
	struct mrf_idmap_slot *slot;
	int ret;

	if (mrf_unlikely(map->old.slots != NULL))
		move_some(map);
	/* Kept at most half full: probes stay short. An empty map has a mask of 0. */
	if (mrf_unlikely((map->count + 1) * 2 > table->mask + 1)) {
		ret = grow(map);
		if (ret)
			return ret;
	}
	if (mrf_unlikely(map->old.slots && probe(&map->old, id)->value))
		return -FI_EALREADY;
	slot = probe(table, id);
	if (slot->value)
		return -FI_EALREADY;
	slot->id = id;
	slot->value = value;
	map->count++;
	return 0;
}

void *mrf_idmap_find(const struct mrf_idmap *map, uint64_t id)
{
	void *value = map->table.slots ? probe(&map->table, id)->value : NULL;

	if (mrf_unlikely(!value && map->old.slots))
		value = probe(&map->old, id)->value;
	return value;
}

static void *remove_from(struct mrf_idmap_table *table, uint64_t id)
{
	struct mrf_idmap_slot *slot;
	size_t hole, i;
	void *value;

	if (!table->slots)
		return NULL;
	slot = probe(table, id);
	value = slot->value;
	if (!value)
		return NULL;
	/* Shift back what probing had pushed past the hole, so no tombstones are needed. */
	hole = (size_t)(slot - table->slots);
	for (i = (hole + 1) & table->mask; table->slots[i].value; i = (i + 1) & table->mask) {
		size_t want = home(table, table->slots[i].id);

		if (((i - want) & table->mask) >= ((i - hole) & table->mask)) {
			table->slots[hole] = table->slots[i];
			hole = i;
		}
	}
	table->slots[hole].value = NULL;
	return value;
}

void *mrf_idmap_remove(struct mrf_idmap *map, uint64_t id)
{
	void *value = remove_from(&map->table, id);

	if (mrf_unlikely(!value)) {
		value = remove_from(&map->old, id);
		map->left -= value != NULL;
	}
	map->count -= value != NULL;
	return value;
}

static void each_of(const struct mrf_idmap_table *table, void (*visit)(void *value, void *arg),
		    void *arg)
{
	size_t i;

	for (i = 0; table->slots && i <= table->mask; i++) {
		if (table->slots[i].value)
			visit(table->slots[i].value, arg);
	}
}

void mrf_idmap_each(const struct mrf_idmap *map, void (*visit)(void *value, void *arg), void *arg)
{
	each_of(&map->table, visit, arg);
	each_of(&map->old, visit, arg);
}

/* The slots of both tables as one row. */
static struct mrf_idmap_slot *slot_at(const struct mrf_idmap *map, size_t i)
{
	size_t first = map->table.mask + 1;

	return i < first ? &map->table.slots[i] : &map->old.slots[i - first];
}

void *mrf_idmap_sweep(const struct mrf_idmap *map, size_t *hand)
{
	size_t slots = map->table.mask + 1 + (map->old.slots ? map->old.mask + 1 : 0);
	void *value = NULL;

	while (map->count && !value) {
		*hand %= slots;
		value = slot_at(map, (*hand)++)->value;
	}
	return value;
}

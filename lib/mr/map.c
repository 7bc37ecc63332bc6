/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "mr/map.h"

#define TAG_PREFIX 0xc0000000u

struct mrf_map *mrf_map_new(uint64_t seed)
{
	struct mrf_map *map = calloc(1, sizeof(*map));
	uint32_t tag = TAG_PREFIX | (uint32_t)(seed >> 32);

	if (!map)
		return NULL;
	if (tag == UINT32_MAX)
		tag--; /* otherwise FI_KEY_NOTAVAIL would be one of its keys */
	map->tag = (uint64_t)tag << MRF_MAP_TAG_SHIFT;
	mrf_lock_init(&map->lock, MRF_RANK_MAP);
	return map;
}

static uint64_t key_of(const struct mrf_map_slot *slot)
{
	return atomic_load_explicit(&slot->key, memory_order_acquire);
}

void mrf_map_free(struct mrf_map *map)
{
	uint32_t i;

	if (!map)
		return;
	for (i = 0; i < map->used; i++)
		free(mrf_map_find(map, i)->longer);
	for (i = 0; i < MRF_MAP_CHUNKS; i++)
		free(map->chunk[i]);
	mrf_lock_fini(&map->lock);
	free(map);
}

bool mrf_map_was(struct mrf_map *map, uint64_t key)
{
	const struct mrf_map_slot *slot = mrf_map_find(map, key);
	bool was;

	if (!slot || !mrf_map_maybe(map, key))
		return false;
	mrf_lock_take(&map->lock);
	was = mrf_map_gen(key) < slot->keys && key_of(slot) != key;
	mrf_lock_release(&map->lock);
	return was;
}

/* --- mapping ---------------------------------------------------------------------- */

/* A slot that was never used becomes a spare one. -FI_ENOMEM, -FI_ENOSPC. */
static int extend_map_locked(struct mrf_map *map)
{
	/* A chunk begins here: the chunks before chunk n have (2^n - 1) * FIRST slots. */
	unsigned n = (unsigned)__builtin_ctz(map->used / MRF_MAP_FIRST + 1);
	struct mrf_map_slot *slot;

	mrf_lock_held(&map->lock);
	if (map->used == MRF_MAP_SLOTS)
		return -FI_ENOSPC;
	slot = mrf_map_find(map, map->used);
	if (!slot) {
		slot = calloc((size_t)MRF_MAP_FIRST << n, sizeof(*slot));
		if (!slot)
			return -FI_ENOMEM;
		atomic_store_explicit(&map->chunk[n], slot, memory_order_release);
	}
	slot->index = map->used++;
	map->spare = slot;
	return 0;
}

static int take_slot(struct mrf_map *map, uint8_t *longer, struct mrf_map_slot **slot,
		     uint64_t *key)
{
	int ret;

	mrf_lock_take(&map->lock);
	ret = map->spare ? 0 : extend_map_locked(map);
	if (!ret) {
		*slot = mrf_map_take_locked(map, key);
		(*slot)->longer = longer;
	}
	mrf_lock_release(&map->lock);
	return ret;
}

int mrf_map_add(struct mrf_map *map, const uint8_t *raw, size_t size, uint64_t *key)
{
	/* The bytes may have changed since they were accepted, the length too. */
	size_t len = mrf_min(mrf_min(mrf_rawkey_len(raw), size), (size_t)MRF_RAWKEY_MAX);
	struct mrf_map_slot *slot;
	uint8_t *longer = NULL;
	uint64_t mapped;
	int ret;

	if (len > MRF_RAWKEY_ONE_LEN) {
		longer = calloc(1, MRF_RAWKEY_MAX);
		if (!longer)
			return -FI_ENOMEM;
		memcpy(longer, raw, len);
	}
	ret = take_slot(map, longer, &slot, &mapped);
	if (ret) {
		free(longer);
		return ret;
	}
	mrf_map_fill(slot, raw, mapped);
	*key = mapped;
	return 0;
}

bool mrf_map_remove(struct mrf_map *map, uint64_t key)
{
	uint8_t *longer = NULL;
	struct mrf_map_slot *slot;
	bool live;

	mrf_lock_take(&map->lock);
	live = mrf_map_live(map, key);
	if (live) {
		slot = mrf_map_find(map, key);
		longer = slot->longer;
		slot->longer = NULL;
		mrf_map_clear_locked(map, slot);
	}
	mrf_lock_release(&map->lock);
	free(longer);
	return live;
}

/* --- looking ---------------------------------------------------------------------- */

static bool decode_locked(const struct mrf_map *map, const struct mrf_map_slot *slot,
			  struct mrf_rawkey *out)
{
	const uint8_t *bytes = slot->longer ? slot->longer : slot->bytes;
	size_t room = slot->longer ? MRF_RAWKEY_MAX : MRF_RAWKEY_ONE_LEN;
	const char *why;

	mrf_lock_held(&map->lock);
	return !mrf_rawkey_decode(bytes, room, out, &why);
}

bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out)
{
	bool live;

	mrf_lock_take(&map->lock);
	live = mrf_map_live(map, key) && decode_locked(map, mrf_map_find(map, key), out);
	mrf_lock_release(&map->lock);
	return live;
}

uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw)
{
	uint32_t i, count = 0;

	mrf_lock_take(&map->lock);
	for (i = 0; i < map->used; i++) {
		const struct mrf_map_slot *slot = mrf_map_find(map, i);

		if (!key_of(slot) || count++)
			continue;
		*key = key_of(slot);
		if (!decode_locked(map, slot, raw))
			*raw = (struct mrf_rawkey){ 0 };
	}
	mrf_lock_release(&map->lock);
	return count;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw keys that the application has mapped (fi_mr_map_raw), and the 64-bit keys that
 * it got for them. There is one map per domain: space->map, from mrf_mr_space_init to
 * _fini; small until it is used. Each mapped key takes a slot, which is never freed and
 * holds the bytes of the raw key; those of one that does not fit are allocated.
 *
 * A key: tag in bits 63..32, generation in 31..20, index of the slot in 19..0. The tag
 * begins with 11, as no provider key does, is never all ones, and is random otherwise. An
 * application may have requested a key that looks like a mapped one, so a key for which
 * mrf_map_maybe holds, but neither _live nor _was, is an ordinary key. A generation is
 * never used again: a slot that has used up all of them is retired. So a key is never
 * mistaken for an older one, and everything is O(1).
 *
 * Any thread. The functions that end in _locked are for callers that hold map->lock, of
 * rank MRF_RANK_MAP.
 */
#ifndef MRF_MR_MAP_H
#define MRF_MR_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "proto/rawkey.h"

#define MRF_MAP_INDEX_BITS 20
#define MRF_MAP_GEN_BITS 12
#define MRF_MAP_TAG_SHIFT (MRF_MAP_INDEX_BITS + MRF_MAP_GEN_BITS)
#define MRF_MAP_INDEX_MASK ((1u << MRF_MAP_INDEX_BITS) - 1)
#define MRF_MAP_GEN_MAX ((1u << MRF_MAP_GEN_BITS) - 1)
/* Chunk n has MRF_MAP_FIRST << n slots. */
#define MRF_MAP_FIRST_BITS 6
#define MRF_MAP_FIRST (1u << MRF_MAP_FIRST_BITS)
#define MRF_MAP_CHUNKS 14
#define MRF_MAP_SLOTS (MRF_MAP_FIRST * ((1u << MRF_MAP_CHUNKS) - 1))

_Static_assert(MRF_MAP_TAG_SHIFT == 32, "32 bits are left for the tag");
_Static_assert(MRF_MAP_SLOTS <= MRF_MAP_INDEX_MASK + 1, "every slot has an index");

struct mrf_map_slot {
	_Atomic uint64_t key; /* 0: not mapped. Read without the lock */
	uint32_t index;
	uint32_t keys;		   /* how many it has stood for; the generation of the next one */
	struct mrf_map_slot *next; /* spare */
	uint8_t *longer;	   /* the raw key, if it has more bytes: MRF_RAWKEY_MAX, or NULL */
	uint8_t bytes[MRF_RAWKEY_ONE_LEN];
};

struct mrf_map {
	/*
	 * The last one, for which there is an index, but no key, is never made. Chunks
	 * never move and live as long as the map. Read without the lock.
	 */
	_Atomic(struct mrf_map_slot *) chunk[MRF_MAP_CHUNKS + 1];
	uint64_t tag; /* at its place in keys, the other bits 0; immutable */
	/* Guards what follows, and everything of a slot but its key; mrf_map_fill, too. */
	struct mrf_lock lock;
	uint32_t used; /* slots that are or were in use */
	struct mrf_map_slot *spare;
};

/* seed, from which the tag is made: space->id. NULL: no memory. */
struct mrf_map *mrf_map_new(uint64_t seed);
/* Frees the map with everything that is mapped; harmless with NULL. */
void mrf_map_free(struct mrf_map *map);

/*
 * The number of mapped keys, for messages; sets *key and *raw to one of them, if there is
 * any. Looks at every slot.
 */
uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw);

/* --- for operations --------------------------------------------------------------- */

/* False: certainly not a key of this map. One comparison, done for each access. */
static inline bool mrf_map_maybe(const struct mrf_map *map, uint64_t key)
{
	return (key ^ map->tag) >> MRF_MAP_TAG_SHIFT == 0;
}

/* Finds the slot of a key by its index alone. NULL: there is no such slot. Lock-free. */
static inline struct mrf_map_slot *mrf_map_find(const struct mrf_map *map, uint64_t key)
{
	uint32_t at = ((uint32_t)key & MRF_MAP_INDEX_MASK) + MRF_MAP_FIRST;
	unsigned bit = (unsigned)__builtin_clz(at) ^ 31;
	struct mrf_map_slot *chunk =
		atomic_load_explicit(&map->chunk[bit - MRF_MAP_FIRST_BITS], memory_order_acquire);

	return mrf_likely(chunk) ? chunk + (at - (1u << bit)) : NULL;
}

static inline uint32_t mrf_map_gen(uint64_t key)
{
	return (uint32_t)key >> MRF_MAP_INDEX_BITS;
}

/* Is the key mapped at this moment? Lock-free, done for each access. */
static inline bool mrf_map_live(const struct mrf_map *map, uint64_t key)
{
	const struct mrf_map_slot *slot = mrf_map_find(map, key);

	return slot && key && atomic_load_explicit(&slot->key, memory_order_acquire) == key;
}

/* Was the key mapped once, and is not any more? For the text of an error. */
bool mrf_map_was(struct mrf_map *map, uint64_t key);

/*
 * Decodes the peer's raw key. False: the key is not mapped (see mrf_map_was), or the
 * application has changed the raw key while it was mapped. Rules for the caller:
 * - access is final: a right that it does not grant is refused without asking, also when
 *   nseg is 0 (the agent does not know regions without a remote right);
 * - pos and addresses are read by raw.mr_mode, not by the peer's greeting;
 * - a question carries key and serial; space_id tells which agent can answer it.
 */
bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out);

/* --- mapping and unmapping ---------------------------------------------------------- */

/*
 * raw: size bytes, accepted by mrf_rawkey_check. -FI_ENOMEM, or -FI_ENOSPC when all slots
 * are in use or retired: *key is untouched.
 */
int mrf_map_add(struct mrf_map *map, const uint8_t *raw, size_t size, uint64_t *key);
/* False: the key was not mapped. */
bool mrf_map_remove(struct mrf_map *map, uint64_t key);

/*
 * A key is mapped in two steps. mrf_map_take_locked takes the first spare slot, which must
 * exist, and makes a key for it. mrf_map_fill copies MRF_RAWKEY_ONE_LEN bytes into the slot
 * and thereby maps the key; until then no other thread uses the slot. It is called without
 * the lock, because the application's memory may have to be read in first.
 */
static inline struct mrf_map_slot *mrf_map_take_locked(struct mrf_map *map, uint64_t *key)
{
	struct mrf_map_slot *slot = map->spare;

	mrf_lock_held(&map->lock);
	*key = map->tag | slot->keys++ << MRF_MAP_INDEX_BITS | slot->index;
	map->spare = slot->next;
	return slot;
}

static inline void mrf_map_fill(struct mrf_map_slot *slot, const uint8_t *raw, uint64_t key)
{
	memcpy(slot->bytes, raw, sizeof(slot->bytes));
	atomic_store_explicit(&slot->key, key, memory_order_release);
}

/* Unmaps the key of this slot, which is mapped. */
static inline void mrf_map_clear_locked(struct mrf_map *map, struct mrf_map_slot *slot)
{
	mrf_lock_held(&map->lock);
	atomic_store_explicit(&slot->key, 0, memory_order_release);
	/* A slot that has used up its generations is retired. */
	if (mrf_likely(slot->keys <= MRF_MAP_GEN_MAX)) {
		slot->next = map->spare;
		map->spare = slot;
	}
}

/* False: nothing was done, because the key is not mapped or its raw key is longer. */
static inline bool mrf_map_remove_locked(struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot = mrf_map_find(map, key);

	mrf_lock_held(&map->lock);
	if (mrf_unlikely(!slot || !key || slot->key != key || slot->longer))
		return false;
	mrf_map_clear_locked(map, slot);
	return true;
}

#endif

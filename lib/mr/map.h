/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw keys that the application has mapped (fi_mr_map_raw), and the 64-bit keys that
 * it got for them. One map a domain: space->map, from mrf_mr_space_init to _fini; small
 * until it is used. Memory per mapped key: a slot of 64 bytes, which stays and has in it
 * what the compact form of the raw key says; one that has no such form (several segments,
 * or none that it tells of) is beside it, and goes when it is unmapped.
 *
 * A key: tag in bits 63..32, generation in 31..20, index of the slot in 19..0. The tag
 * begins with 11, which no provider key does, is never all ones, and random otherwise; an
 * application may have requested a key that looks the same, so that a key for which
 * mrf_map_maybe holds, but neither _live nor _was, is an ordinary one. A generation never
 * comes back: a slot that has used up all of them is retired. So a key is never mistaken
 * for an older one, and everything is O(1).
 *
 * The head of the list of spare slots is its own lock: who exchanges it for MRF_MAP_BUSY
 * has the list, and gives it back with a store. It guards what is not said to be
 * lock-free. Any thread; with any lock held; nothing is called while the list is taken,
 * but malloc when there is no spare slot.
 */
#ifndef MRF_MR_MAP_H
#define MRF_MR_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "proto/rawkey_one.h"

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
	/*
	 * Mapped: the key. Else the next key without its tag, and one more, so that it has
	 * the index of another slot: a key that leads here and is found here is mapped.
	 * Retired: bit 32 is set, as no generation is left. Read without the lock.
	 */
	_Atomic uint64_t name;
	union {
		struct mrf_rawkey *raw; /* beside: with seg[nseg] only */
		struct mrf_map_slot *next; /* spare */
	};
	/* Mapped; a serial of 0, which no region has: it is beside. */
	struct mrf_rawkey_said said;
};

_Static_assert(sizeof(struct mrf_map_slot) == 64, "a line of the cache");

/* Set in keys, but in no name of what is not mapped. */
#define MRF_MAP_MAPPED (1ull << 63)
/* From the lower half of a key to the name of its slot afterwards. */
#define MRF_MAP_TO_NEXT ((1u << MRF_MAP_INDEX_BITS) + 1)

/* In the place of the spare slots: somebody has them. */
#define MRF_MAP_BUSY ((struct mrf_map_slot *)1)

struct mrf_map {
	_Atomic(struct mrf_map_slot *) spare;
	/*
	 * Chunks never move and live as long as the map. An index and MRF_MAP_FIRST have as
	 * many bits as it takes to tell the chunk, and are as many slots behind what is
	 * here; 0: is not there (yet). Lock-free.
	 */
	_Atomic uintptr_t chunk[MRF_MAP_INDEX_BITS + 1];
	void *memory[MRF_MAP_CHUNKS]; /* what is to be freed */
	/* Taken, and given back unused. Pushed lock-free, taken all at once. */
	_Atomic(struct mrf_map_slot *) returned;
	uint64_t tag;	 /* where it is in keys, the rest is 0; immutable */
	uint64_t to_key; /* what the name of a slot lacks to be a key; immutable */
	uint32_t used;	 /* slots that are or were spare */
};

/* The tag is made from seed: space->id. NULL: no memory. */
struct mrf_map *mrf_map_new(uint64_t seed);
/* With everything that is mapped; harmless for NULL. */
void mrf_map_free(struct mrf_map *map);

/* -FI_ENOMEM, or -FI_ENOSPC when all slots are in use or retired: *key is untouched. */
int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key);
/* False: was not mapped. */
bool mrf_map_remove(struct mrf_map *map, uint64_t key);

/*
 * How many are mapped, for messages; *key and *raw are written unless there is none. Looks
 * at every slot.
 */
uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw);

/* --- for operations --------------------------------------------------------------- */

/* False: certainly no key of this map. One compare, for each access. */
static inline bool mrf_map_maybe(const struct mrf_map *map, uint64_t key)
{
	return (key ^ map->tag) >> MRF_MAP_TAG_SHIFT == 0;
}

/* Where a key with this index is, whatever else it has. False: nowhere. Lock-free. */
static MRF_ALWAYS_INLINE bool mrf_map_find(const struct mrf_map *map, uint64_t key,
					   struct mrf_map_slot **slot)
{
	uint64_t index = (key & MRF_MAP_INDEX_MASK) + MRF_MAP_FIRST;
	unsigned long bit = (unsigned long)__builtin_clzll(index) ^ 63;
	uintptr_t chunk = atomic_load_explicit(&map->chunk[bit], memory_order_acquire);

	*slot = (struct mrf_map_slot *)(chunk + index * sizeof(**slot));
	return mrf_likely(chunk);
}

static inline uint32_t mrf_map_gen(uint64_t key)
{
	return (uint32_t)key >> MRF_MAP_INDEX_BITS;
}

/* Is mapped at this moment. Lock-free, for each access. */
static inline bool mrf_map_live(const struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot;

	return mrf_map_find(map, key, &slot) &&
	       atomic_load_explicit(&slot->name, memory_order_acquire) == key;
}

/* Was mapped once and is not any more: for the text of an error. Lock-free. */
bool mrf_map_was(const struct mrf_map *map, uint64_t key);

/*
 * Copies what the peer's raw key says, as mrf_rawkey_decode let it pass; false: not
 * mapped (see mrf_map_was). Takes the list. To be done with it:
 * - access is for good: what it does not grant is refused without a question, also when
 *   nseg is 0 (a region without a remote right is not known to the agent at all);
 * - pos and addresses are read by raw.mr_mode, not by the peer's greeting;
 * - the question carries key and serial; space_id tells whose agent can answer it.
 */
bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out);

/* --- the short ways of mapping and unmapping -------------------------------------- */

/* They do what is usual, and call nothing. */

/* MRF_MAP_BUSY: somebody else has the list. Else it is the caller's, until _leave. */
static inline struct mrf_map_slot *mrf_map_try(struct mrf_map *map)
{
	return atomic_exchange_explicit(&map->spare, MRF_MAP_BUSY, memory_order_acquire);
}

static inline void mrf_map_leave(struct mrf_map *map, struct mrf_map_slot *spare)
{
	atomic_store_explicit(&map->spare, spare, memory_order_release);
}

/* A slot that becomes the caller's. NULL: there is none, or somebody else has the list. */
static MRF_ALWAYS_INLINE struct mrf_map_slot *mrf_map_take_short(struct mrf_map *map)
{
	struct mrf_map_slot *slot = mrf_map_try(map);

	if (mrf_likely((uintptr_t)slot > (uintptr_t)MRF_MAP_BUSY)) {
		mrf_map_leave(map, slot->next);
		return slot;
	}
	if (!slot)
		mrf_map_leave(map, NULL);
	return NULL;
}

/* Gives a slot back that was taken and not published. */
static inline void mrf_map_untake(struct mrf_map *map, struct mrf_map_slot *slot)
{
	slot->next = atomic_load_explicit(&map->returned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&map->returned, &slot->next, slot,
						      memory_order_release,
						      memory_order_relaxed))
		;
}

/* The caller's slot stands for what is said there now, or is beside it. Its key. */
static inline uint64_t mrf_map_publish(const struct mrf_map *map, struct mrf_map_slot *slot)
{
	uint64_t key = atomic_load_explicit(&slot->name, memory_order_relaxed) +
		       map->to_key;

	/* Who sees the key sees what it stands for. */
	atomic_store_explicit(&slot->name, key, memory_order_release);
	return key;
}

/*
 * Called with the free list held; releases it. False: the key is outside the table or not
 * mapped, and nothing was done.
 */
static MRF_ALWAYS_INLINE bool mrf_map_remove_locked(struct mrf_map *map,
						    struct mrf_map_slot *list,
						    struct mrf_map_slot *slot, uint64_t key)
{
	uint32_t next = (uint32_t)key + MRF_MAP_TO_NEXT;

	if (mrf_unlikely(atomic_load_explicit(&slot->name, memory_order_acquire) != key))
		return false;
	if (mrf_unlikely(!slot->said.word[MRF_RAWKEY_SERIAL]))
		return false;
	/* The last generation. */
	if (mrf_unlikely(next < MRF_MAP_TO_NEXT))
		return false;
	atomic_store_explicit(&slot->name, next, memory_order_release);
	slot->next = list;
	mrf_map_leave(map, slot);
	return true;
}

/* mrf_map_remove of what has nothing beside it. False: not that, or not now. */
static MRF_ALWAYS_INLINE bool mrf_map_remove_short(struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot, *list;

	if (mrf_unlikely(!mrf_map_find(map, key, &slot)))
		return false;
	list = mrf_map_try(map);
	if (mrf_unlikely(list == MRF_MAP_BUSY))
		return false;
	if (mrf_likely(mrf_map_remove_locked(map, list, slot, key)))
		return true;
	mrf_map_leave(map, list);
	return false;
}

#endif

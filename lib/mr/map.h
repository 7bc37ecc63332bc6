/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw keys that the application has mapped (fi_mr_map_raw), and the 64-bit keys that
 * it got for them. There is one map per domain: space->map, from mrf_mr_space_init to
 * _fini; small until it is used. Each mapped key takes a slot of 64 bytes, which is never
 * freed and holds the content of the raw key's compact form. A raw key without a compact
 * form (several segments, or none) is "beside" its slot, in memory of its own that is
 * freed when the key is unmapped.
 *
 * A key: tag in bits 63..32, generation in 31..20, index of the slot in 19..0. The tag
 * begins with 11, as no provider key does, is never all ones, and is random otherwise. An
 * application may have requested a key that looks like a mapped one, so a key for which
 * mrf_map_maybe holds, but neither _live nor _was, is an ordinary key. A generation is
 * never used again: a slot that has used up all of them is retired. So a key is never
 * mistaken for an older one, and everything is O(1).
 *
 * The head of the list of spare slots is also the lock: a thread takes the list by
 * exchanging the head for MRF_MAP_BUSY, and returns it with a store. The lock guards
 * everything that is not said to be lock-free. All functions may be called from any
 * thread and with any lock held; while the list is taken nothing is called except malloc,
 * when there is no spare slot.
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
	 * While mapped: the key. Otherwise the next key without its tag, plus one, so
	 * that its index is that of another slot: a key that leads to this slot and
	 * equals its name is mapped. Retired: bit 32 is set, because no generation is
	 * left. Read without the lock.
	 */
	_Atomic uint64_t name;
	union {
		struct mrf_rawkey *raw; /* if beside: allocated with seg[nseg] only */
		struct mrf_map_slot *next; /* spare */
	};
	/*
	 * While mapped; a serial of 0, which no region has, means that the raw key is
	 * beside.
	 */
	struct mrf_rawkey_said said;
};

_Static_assert(sizeof(struct mrf_map_slot) == 64, "a line of the cache");

/* Set in every key, and in no name of a slot that is not mapped. */
#define MRF_MAP_MAPPED (1ull << 63)
/* Added to the lower half of a key, gives the name of its slot after unmapping. */
#define MRF_MAP_TO_NEXT ((1u << MRF_MAP_INDEX_BITS) + 1)

/* In place of the list of spare slots: another thread has the list. */
#define MRF_MAP_BUSY ((struct mrf_map_slot *)1)

struct mrf_map {
	_Atomic(struct mrf_map_slot *) spare;
	/*
	 * Where to find slots, by the number of the highest bit of index + MRF_MAP_FIRST,
	 * which tells the chunk: the slot is that many slots (index + MRF_MAP_FIRST)
	 * behind the address here. 0: the chunk does not exist (yet). Chunks never move
	 * and live as long as the map. Read lock-free.
	 */
	_Atomic uintptr_t chunk[MRF_MAP_INDEX_BITS + 1];
	void *memory[MRF_MAP_CHUNKS]; /* the chunks as allocated, for free */
	/* Slots taken and given back unused. Pushed lock-free, collected all at once. */
	_Atomic(struct mrf_map_slot *) returned;
	uint64_t tag;	 /* at its place in keys, the other bits 0; immutable */
	uint64_t to_key; /* added to a spare slot's name, gives its next key; immutable */
	uint32_t used;	 /* slots that are or were spare */
};

/* seed, from which the tag is made: space->id. NULL: no memory. */
struct mrf_map *mrf_map_new(uint64_t seed);
/* Frees the map with everything that is mapped; harmless with NULL. */
void mrf_map_free(struct mrf_map *map);

/* -FI_ENOMEM, or -FI_ENOSPC when all slots are in use or retired: *key is untouched. */
int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key);
/* False: the key was not mapped. */
bool mrf_map_remove(struct mrf_map *map, uint64_t key);

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

/* Finds the slot of a key by its index alone. False: there is no such slot. Lock-free. */
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

/* Is the key mapped at this moment? Lock-free, done for each access. */
static inline bool mrf_map_live(const struct mrf_map *map, uint64_t key)
{
	struct mrf_map_slot *slot;

	return mrf_map_find(map, key, &slot) &&
	       atomic_load_explicit(&slot->name, memory_order_acquire) == key;
}

/* Was the key mapped once, and is not any more? For the text of an error. Lock-free. */
bool mrf_map_was(const struct mrf_map *map, uint64_t key);

/*
 * Copies the content of the peer's raw key, as accepted by mrf_rawkey_decode. False: the
 * key is not mapped (see mrf_map_was). Takes the list. Rules for the caller:
 * - access is final: a right that it does not grant is refused without asking, also when
 *   nseg is 0 (the agent does not know regions without a remote right);
 * - pos and addresses are read by raw.mr_mode, not by the peer's greeting;
 * - a question carries key and serial; space_id tells which agent can answer it.
 */
bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out);

/* --- fast paths of mapping and unmapping ------------------------------------------ */

/* These functions handle the usual cases and call nothing. */

/*
 * Takes the list until mrf_map_leave and returns its first slot. MRF_MAP_BUSY: another
 * thread has the list.
 */
static inline struct mrf_map_slot *mrf_map_try(struct mrf_map *map)
{
	return atomic_exchange_explicit(&map->spare, MRF_MAP_BUSY, memory_order_acquire);
}

static inline void mrf_map_leave(struct mrf_map *map, struct mrf_map_slot *spare)
{
	atomic_store_explicit(&map->spare, spare, memory_order_release);
}

/* Takes a slot for the caller. NULL: there is none, or another thread has the list. */
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

/* Gives back a slot that was taken and not published. */
static inline void mrf_map_untake(struct mrf_map *map, struct mrf_map_slot *slot)
{
	slot->next = atomic_load_explicit(&map->returned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&map->returned, &slot->next, slot,
						      memory_order_release,
						      memory_order_relaxed))
		;
}

/* Maps the caller's slot with the raw key in said, or beside; returns the key. */
static inline uint64_t mrf_map_publish(const struct mrf_map *map, struct mrf_map_slot *slot)
{
	uint64_t key = atomic_load_explicit(&slot->name, memory_order_relaxed) +
		       map->to_key;

	/* A thread that sees the key also sees the content of the slot. */
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
	/* This was the slot's last generation. */
	if (mrf_unlikely(next < MRF_MAP_TO_NEXT))
		return false;
	atomic_store_explicit(&slot->name, next, memory_order_release);
	slot->next = list;
	mrf_map_leave(map, slot);
	return true;
}

/*
 * mrf_map_remove for a raw key in its slot. False: the raw key is beside, or the list is
 * taken, or the key is not mapped; nothing was done.
 */
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

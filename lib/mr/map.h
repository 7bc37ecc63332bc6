/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw keys that the application has mapped (fi_mr_map_raw), and the 64-bit keys that
 * it got for them. One map a domain: space->map, from mrf_mr_space_init to _fini; small
 * until it is used. Memory per mapped key: a slot of 80 bytes, which stays and has the
 * compact form of the raw key in it; one that has no such form (several segments, or none
 * that it tells of) is beside it, and goes when it is unmapped.
 *
 * A key: tag in bits 63..32, generation in 31..20, index of the slot in 19..0. The tag
 * begins with 11, which no provider key does, is never all ones, and random otherwise; an
 * application may have requested a key that looks the same, so that a key for which
 * mrf_map_maybe holds, but neither _live nor _was, is an ordinary one. A generation never
 * comes back: a slot that has used up all of them is retired. So a key is never mistaken
 * for an older one, and everything is O(1).
 *
 * Any thread; map->lock (rank MR, never together with space->lock) guards what is not
 * said to be lock-free.
 */
#ifndef MRF_MR_MAP_H
#define MRF_MR_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/lock.h"
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

/* Guarded by the lock, but for state. */
struct mrf_map_slot {
	/* Generation (of the next key, or the mapped one) << 1 | mapped. */
	_Atomic uint32_t state;
	uint32_t index; /* immutable once it was used */
	union {
		struct mrf_rawkey *raw; /* mapped: with seg[nseg] only; NULL: it is one */
		struct mrf_map_slot *next; /* spare */
	};
	struct mrf_rawkey_one one;
};

struct mrf_map {
	uint32_t tag; /* immutable */
	struct mrf_lock lock;
	uint32_t used;	/* slots ever handed out */
	uint32_t count; /* keys mapped */
	struct mrf_map_slot *spare;
	/* Chunks never move and live as long as the map. */
	_Atomic(struct mrf_map_slot *) chunk[MRF_MAP_CHUNKS];
};

/* The tag is made from seed: space->id. NULL: no memory. */
struct mrf_map *mrf_map_new(uint64_t seed);
/* With everything that is mapped; harmless for NULL. */
void mrf_map_free(struct mrf_map *map);

/* -FI_ENOMEM, or -FI_ENOSPC when all slots are in use or retired: *key is untouched. */
int mrf_map_add(struct mrf_map *map, const struct mrf_rawkey *raw, uint64_t *key);

/* What there is, for messages; *key and *raw are written unless there is none. */
uint32_t mrf_map_count(struct mrf_map *map, uint64_t *key, struct mrf_rawkey *raw);

/* --- for operations --------------------------------------------------------------- */

/* False: certainly no key of this map. One compare, for each access. */
static inline bool mrf_map_maybe(const struct mrf_map *map, uint64_t key)
{
	return key >> MRF_MAP_TAG_SHIFT == map->tag;
}

/* NULL: no key of this map. The slot may be mapped under another generation. */
static inline const struct mrf_map_slot *mrf_map_slot(const struct mrf_map *map,
						      uint64_t key)
{
	uint32_t index = ((uint32_t)key & MRF_MAP_INDEX_MASK) + MRF_MAP_FIRST;
	unsigned n = 31u - MRF_MAP_FIRST_BITS - (unsigned)__builtin_clz(index);
	const struct mrf_map_slot *slots;

	if (!mrf_map_maybe(map, key) || n >= MRF_MAP_CHUNKS)
		return NULL;
	slots = atomic_load_explicit(&map->chunk[n], memory_order_acquire);
	return slots ? &slots[index - (MRF_MAP_FIRST << n)] : NULL;
}

static inline uint32_t mrf_map_gen(uint64_t key)
{
	return (uint32_t)key >> MRF_MAP_INDEX_BITS;
}

/* Is mapped at this moment. Lock-free, for each access. */
static inline bool mrf_map_live(const struct mrf_map *map, uint64_t key)
{
	const struct mrf_map_slot *slot = mrf_map_slot(map, key);

	return slot && atomic_load_explicit(&slot->state, memory_order_acquire) ==
			       (mrf_map_gen(key) << 1 | 1);
}

/* Was mapped once and is not any more: for the text of an error. Lock-free. */
static inline bool mrf_map_was(const struct mrf_map *map, uint64_t key)
{
	const struct mrf_map_slot *slot = mrf_map_slot(map, key);
	uint32_t state;

	if (!slot)
		return false;
	state = atomic_load_explicit(&slot->state, memory_order_acquire);
	return mrf_map_gen(key) < state >> 1;
}

/*
 * Copies what the peer's raw key says, as mrf_rawkey_decode let it pass; false: not
 * mapped (see mrf_map_was). Takes map->lock. To be done with it:
 * - access is for good: what it does not grant is refused without a question, also when
 *   nseg is 0 (a region without a remote right is not known to the agent at all);
 * - pos and addresses are read by raw.mr_mode, not by the peer's greeting;
 * - the question carries key and serial; space_id tells whose agent can answer it.
 */
bool mrf_map_get(struct mrf_map *map, uint64_t key, struct mrf_rawkey *out);

/* --- mapping and unmapping -------------------------------------------------------- */

/* What slot->raw, or slot->one if that is NULL, has gets a key; map->lock is held. */
static inline uint64_t mrf_map_set_locked(struct mrf_map *map, struct mrf_map_slot *slot)
{
	uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);

	atomic_store_explicit(&slot->state, state | 1, memory_order_release);
	map->count++;
	/* The generation is above the lowest bit, which is not set. */
	return (uint64_t)map->tag << MRF_MAP_TAG_SHIFT |
	       (state << (MRF_MAP_INDEX_BITS - 1) | slot->index);
}

/* As mrf_map_add, of what mrf_rawkey_one_ok let pass. */
int mrf_map_add_one(struct mrf_map *map, const struct mrf_rawkey_one *one, uint64_t *key);
/* False: was not mapped. */
bool mrf_map_remove(struct mrf_map *map, uint64_t key);

/*
 * Bits of what the short ways below have left to do: they do all that is usual, and call
 * nothing. 0: it is done.
 */
#define MRF_MAP_LONG 1 /* all of it: the way is not this short */
#define MRF_MAP_WAKE 2 /* mrf_lock_wake, first of all */

static inline int mrf_map_leave(struct mrf_map *map)
{
	return mrf_lock_leave(&map->lock) ? MRF_MAP_WAKE : 0;
}

/* mrf_map_add_one into a slot that is spare. */
static inline int mrf_map_add_short(struct mrf_map *map, const struct mrf_rawkey_one *one,
				    uint64_t *key)
{
	struct mrf_map_slot *slot;
	uint64_t given;
	int left;

	if (mrf_unlikely(!mrf_lock_try(&map->lock)))
		return MRF_MAP_LONG;
	slot = map->spare;
	if (mrf_unlikely(!slot))
		return MRF_MAP_LONG | mrf_map_leave(map);
	map->spare = slot->next;
	slot->raw = NULL;
	slot->one = *one;
	given = mrf_map_set_locked(map, slot);
	left = mrf_map_leave(map);
	*key = given;
	return left;
}

/* mrf_map_remove of what has nothing beside it. */
static inline int mrf_map_remove_short(struct mrf_map *map, uint64_t key)
{
	/* Slots never move. */
	struct mrf_map_slot *slot = (struct mrf_map_slot *)mrf_map_slot(map, key);
	uint32_t state = mrf_map_gen(key) << 1 | 1;

	if (mrf_unlikely(!slot || !mrf_lock_try(&map->lock)))
		return MRF_MAP_LONG;
	if (mrf_unlikely(atomic_load_explicit(&slot->state, memory_order_relaxed) !=
				 state ||
			 slot->raw || state >> 1 == MRF_MAP_GEN_MAX))
		return MRF_MAP_LONG | mrf_map_leave(map);
	/* The next generation, not mapped. */
	atomic_store_explicit(&slot->state, state + 1, memory_order_release);
	map->count--;
	slot->next = map->spare;
	map->spare = slot;
	return mrf_map_leave(map);
}

#endif

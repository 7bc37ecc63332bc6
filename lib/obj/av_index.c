/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A map from the hash of an address to the first of a ring: the entries with that hash, in the order
 * in which they were filled. These are, but for a hash that two addresses share, the insertions of
 * one address.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/idmap.h"
#include "base/random.h"
#include "obj/av_index.h"
#include "obj/av_int.h"

struct neighbours { /* in the ring; indices of entries */
	size_t next;
	size_t prev;
};

struct mrf_av_index {
	uint64_t seed[2];
	struct mrf_idmap first;			  /* by hash: 1 + the index of the entry */
	struct neighbours *chunks[MRF_AV_CHUNKS]; /* as those of the entries */
};

static struct neighbours *neighbours_of(const struct mrf_av_index *index, size_t i)
{
	size_t offset, c = mrf_av_chunk_of(i, &offset);

	return &index->chunks[c][offset];
}

/* Like neighbours_of, of an entry that may be the first of its chunk; NULL: no memory. */
static struct neighbours *ring_room(struct mrf_av_index *index, size_t i)
{
	size_t offset, c = mrf_av_chunk_of(i, &offset);

	if (!index->chunks[c])
		index->chunks[c] = malloc(sizeof(struct neighbours) << (MRF_AV_FIRST_BITS + c));
	return index->chunks[c] ? &index->chunks[c][offset] : NULL;
}

/* --- the first of a ring ---------------------------------------------------------------- */

#define NO_ENTRY SIZE_MAX

static size_t first_of(const struct mrf_av_index *index, uint64_t hash)
{
	/* None is 0, and becomes NO_ENTRY. */
	return (uintptr_t)mrf_idmap_find(&index->first, hash) - 1;
}

static int set_first(struct mrf_av_index *index, uint64_t hash, size_t i)
{
	mrf_idmap_remove(&index->first, hash);
	return mrf_idmap_insert(&index->first, hash, (void *)(uintptr_t)(i + 1));
}

/* --- entries of a ring ------------------------------------------------------------------- */

/* The hash of an entry's address. */
static uint64_t hash_of(const struct mrf_av *av, size_t i)
{
	union mrf_addr addr = { 0 };

	(void)mrf_av_get(av, i, &addr);
	return mrf_addr_hash(&addr, av->index->seed);
}

static void ring_insert(struct mrf_av_index *index, size_t i, size_t after)
{
	struct neighbours *own = neighbours_of(index, i), *before = neighbours_of(index, after);

	own->prev = after;
	own->next = before->next;
	neighbours_of(index, own->next)->prev = i;
	before->next = i;
}

/*
 * Behind which entry this one belongs, in a ring that is not empty. That is the last one, unless the
 * index is being made: then indices that were used again come before earlier entries.
 */
static size_t predecessor(const struct mrf_av *av, size_t first, size_t i)
{
	uint64_t gen = mrf_av_gen(av, i);
	size_t last = neighbours_of(av->index, first)->prev, at = last;

	if (mrf_av_gen(av, first) > gen)
		return last;
	while (mrf_av_gen(av, at) > gen)
		at = neighbours_of(av->index, at)->prev;
	return at;
}

static int index_entry(struct mrf_av *av, size_t i)
{
	struct neighbours *own = ring_room(av->index, i);
	uint64_t hash = hash_of(av, i);
	size_t first = first_of(av->index, hash);

	if (!own)
		return -FI_ENOMEM;
	*own = (struct neighbours){ i, i };
	if (first == NO_ENTRY)
		return set_first(av->index, hash, i);
	ring_insert(av->index, i, predecessor(av, first, i));
	return mrf_av_gen(av, first) > mrf_av_gen(av, i) ? set_first(av->index, hash, i) : 0;
}

void mrf_av_index_add_locked(struct mrf_av *av, size_t i)
{
	mrf_lock_held(&av->lock);
	if (index_entry(av, i))
		mrf_av_index_drop(av);
}

/* Returns the first of the ring afterwards. */
static size_t ring_remove(struct mrf_av_index *index, size_t first, size_t i)
{
	struct neighbours *own = neighbours_of(index, i);

	if (own->next == i)
		return NO_ENTRY;
	neighbours_of(index, own->prev)->next = own->next;
	neighbours_of(index, own->next)->prev = own->prev;
	return first == i ? own->next : first;
}

void mrf_av_index_remove_locked(struct mrf_av *av, size_t i)
{
	uint64_t hash = hash_of(av, i);
	size_t first = first_of(av->index, hash), then = ring_remove(av->index, first, i);

	mrf_lock_held(&av->lock);
	if (then == NO_ENTRY)
		mrf_idmap_remove(&av->index->first, hash);
	else if (then != first && set_first(av->index, hash, then))
		mrf_av_index_drop(av);
}

/* --- making and dropping ------------------------------------------------------------------ */

void mrf_av_index_drop(struct mrf_av *av)
{
	struct mrf_av_index *index = av->index;
	size_t c;

	if (!index)
		return;
	av->index = NULL;
	for (c = 0; c < MRF_AV_CHUNKS; c++)
		free(index->chunks[c]);
	mrf_idmap_fini(&index->first);
	free(index);
}

static struct mrf_av_index *index_new(void)
{
	struct mrf_av_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	if (!mrf_random(index->seed, sizeof(index->seed))) {
		free(index);
		return NULL;
	}
	mrf_idmap_init(&index->first);
	return index;
}

static void index_make_locked(struct mrf_av *av)
{
	size_t i;

	av->index = index_new();
	for (i = 0; av->index && i < av->used; i++) {
		if (mrf_av_gen(av, i))
			mrf_av_index_add_locked(av, i);
	}
}

/* --- asking ------------------------------------------------------------------------------- */

static bool is_at(const struct mrf_av *av, size_t i, const union mrf_addr *addr)
{
	union mrf_addr own;

	return !mrf_av_get(av, i, &own) && mrf_addr_same_host(&own.sa, &addr->sa) &&
	       mrf_addr_port(&own) == mrf_addr_port(addr);
}

static fi_addr_t find_by_hash(const struct mrf_av *av, const union mrf_addr *addr)
{
	size_t first = first_of(av->index, mrf_addr_hash(addr, av->index->seed)), i = first;

	while (i != NO_ENTRY) {
		if (is_at(av, i, addr))
			return i;
		i = neighbours_of(av->index, i)->next;
		i = i == first ? NO_ENTRY : i;
	}
	return FI_ADDR_NOTAVAIL;
}

static fi_addr_t find_by_walk(const struct mrf_av *av, const union mrf_addr *addr)
{
	fi_addr_t found = FI_ADDR_NOTAVAIL;
	uint64_t gen = UINT64_MAX;
	size_t i;

	for (i = 0; i < av->used; i++) {
		if (mrf_av_gen(av, i) < gen && is_at(av, i, addr)) {
			found = i;
			gen = mrf_av_gen(av, i);
		}
	}
	return found;
}

fi_addr_t mrf_av_find(struct mrf_av *av, const union mrf_addr *addr)
{
	fi_addr_t found;

	if (addr->sa.sa_family != av->family)
		return FI_ADDR_NOTAVAIL;
	mrf_lock_take(&av->lock);
	if (!av->index)
		index_make_locked(av);
	found = av->index ? find_by_hash(av, addr) : find_by_walk(av, addr);
	mrf_lock_release(&av->lock);
	return found;
}

uint64_t mrf_av_changes(const struct mrf_av *av)
{
	return atomic_load_explicit(&av->changes, memory_order_acquire);
}

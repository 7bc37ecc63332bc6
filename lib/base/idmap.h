/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sparse map from any 64-bit number (0 and 2^64-1 included) to a non-NULL pointer: open
 * addressing with linear probing and backward-shift deletion, so insert, find and remove
 * are O(1) whatever the history. A map that grows has two tables for a while: each insert moves a
 * few values, so that none takes long. The caller owns the values and serialises all calls.
 * Only mrf_idmap_insert can fail: -FI_ENOMEM, or -FI_EALREADY when the id is taken; the
 * map is unchanged then.
 */
#ifndef MRF_BASE_IDMAP_H
#define MRF_BASE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct mrf_idmap_table {
	struct mrf_idmap_slot *slots; /* NULL: there is none */
	size_t mask;		      /* number of slots - 1; a power of two minus one */
};

struct mrf_idmap {
	struct mrf_idmap_table table; /* none until the first insert */
	struct mrf_idmap_table old;   /* while it moves to table: what is left of it */
	size_t count;		      /* of values, and how many are left in old */
	size_t left;
	size_t moved; /* the slot of old from which on to move, mod its size */
};

void mrf_idmap_init(struct mrf_idmap *map);
void mrf_idmap_fini(struct mrf_idmap *map);
int mrf_idmap_insert(struct mrf_idmap *map, uint64_t id, void *value);
/* NULL when the id is not in the map. */
void *mrf_idmap_find(const struct mrf_idmap *map, uint64_t id);
/* Returns the removed value, or NULL. */
void *mrf_idmap_remove(struct mrf_idmap *map, uint64_t id);
/* Calls visit for every value; visit must not change the map. */
void mrf_idmap_each(const struct mrf_idmap *map, void (*visit)(void *value, void *arg), void *arg);
/*
 * Returns a value, a different one with each call until all have been returned, in an
 * order unrelated to that of the inserts. *hand (0 at first) is the place to continue
 * from. NULL: the map is empty.
 */
void *mrf_idmap_sweep(const struct mrf_idmap *map, size_t *hand);

#endif

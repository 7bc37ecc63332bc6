/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sparse map from any 64-bit number (0 and 2^64-1 included) to a non-NULL pointer: open
 * addressing with linear probing and backward-shift deletion, so insert, find and remove
 * are O(1) whatever the history. The caller owns the values and serialises all calls.
 * Only mrf_idmap_insert can fail: -FI_ENOMEM, or -FI_EALREADY when the id is taken; the
 * map is unchanged then.
 */
#ifndef MRF_BASE_IDMAP_H
#define MRF_BASE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct mrf_idmap {
	struct mrf_idmap_slot *slots; /* NULL until the first insert */
	size_t mask;		      /* number of slots - 1; a power of two minus one */
	size_t count;
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

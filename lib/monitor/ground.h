/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ground: ranges that stay registered with userfaultfd when nothing in them is watched any
 * more, because registering costs as much as pinning. Each is known to lie in one private
 * anonymous mapping, so what is watched there needs neither a registration nor a proof.
 *
 * A table of fixed size, as it is written while memory can neither be allocated nor freed. A
 * range lies in one chunk of MRF_CHUNK bytes and is one word, which hooks read without a lock:
 * mrf_ground_touches. All else is serialised by the caller. A range that finds no room in the
 * table is not ground, which costs time only.
 */
#ifndef MRF_MONITOR_GROUND_H
#define MRF_MONITOR_GROUND_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_CHUNK ((uintptr_t)2 << 20)
#define MRF_GROUND_WAYS 4     /* ranges in a set, to which a chunk always belongs */
#define MRF_GROUND_SETS 1024u /* neighbouring chunks belong to different sets */

/*
 * How much memory around a watch becomes ground with it, if its chunk has ground already. A
 * step that failed once in a chunk is not tried there again, and each change of its memory
 * takes the chunk a step on.
 */
enum mrf_ground_step {
	MRF_GROUND_CHUNK, /* all of the chunk */
	MRF_GROUND_GRID, /* the memory between the watch and its chunk's ground, and a little more */
	MRF_GROUND_HULL, /* the memory between */
	MRF_GROUND_EXACT /* nothing */
};

struct mrf_ground {
	uintptr_t start; /* whole pages */
	uintptr_t end;
	enum mrf_ground_step step;
};

/* Where the chunk of start ends; not behind end. */
static inline uintptr_t mrf_chunk_end(uintptr_t start, uintptr_t end)
{
	uintptr_t next = (start | (MRF_CHUNK - 1)) + 1;

	return next && next < end ? next : end;
}

/*
 * Is any of [start, end) ground? Finds each range that is in the table during the whole call.
 * No lock.
 */
bool mrf_ground_touches(uintptr_t start, uintptr_t end);

/* --- serialised by the caller -------------------------------------------------------- */

/* Is [start, end), in one chunk, in one range? */
bool mrf_ground_has(uintptr_t start, uintptr_t end);
/* The lowest range that overlaps [start, end), which is in one chunk. False: none. */
bool mrf_ground_first(uintptr_t start, uintptr_t end, struct mrf_ground *found);
/*
 * Walks through the ranges that overlap, which the caller may remove or cut; *at is 0 for the
 * first call. False: there are no more.
 */
bool mrf_ground_next(uintptr_t start, uintptr_t end, unsigned *at, struct mrf_ground *found);
/* The ith range of the set that the address belongs to. False: that place is free. */
bool mrf_ground_in_set(uintptr_t addr, unsigned i, struct mrf_ground *found);
/* Ranges may overlap. False: there is no room in the set. */
bool mrf_ground_add(const struct mrf_ground *range);
/* Removes the range that is equal except for its step. */
void mrf_ground_remove(const struct mrf_ground *range);
/*
 * Cuts [start, end), which overlaps it, out of a range of the table. True: one of the parts
 * that are left, *lost, finds no room, and is no longer ground.
 */
bool mrf_ground_cut(const struct mrf_ground *range, uintptr_t start, uintptr_t end,
		    struct mrf_ground *lost);
/* How many ranges there are. */
unsigned mrf_ground_count(void);
void mrf_ground_clear(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many pieces of memory may be registered with userfaultfd: each may split a mapping, and
 * the number of mappings is limited (vm.max_map_count); the second half of the limit is left to
 * the application. Counting all mappings takes long if there are many, so it is done only when
 * the number of pieces has doubled. Pure; the caller serialises.
 */
#ifndef MRF_MONITOR_PIECES_H
#define MRF_MONITOR_PIECES_H

#include <stdbool.h>
#include <stdint.h>

/* All 0: nothing is registered, and nothing may be. */
struct mrf_pieces {
	unsigned long count;  /* registered with the kernel, overlaps counted twice */
	unsigned long few;    /* up to here mappings need not be counted ... */
	unsigned long enough; /* ... and up to here not again */
	unsigned half;	      /* of the mappings that the kernel allows this process */
	uint64_t full_until;  /* ms */
};

enum mrf_pieces_room {
	MRF_PIECES_FIT,	   /* more may be registered */
	MRF_PIECES_FULL,   /* not now */
	MRF_PIECES_UNKNOWN /* the mappings are to be counted: mrf_pieces_counted */
};

/* half: of the mappings that the kernel allows. */
void mrf_pieces_start(struct mrf_pieces *pieces, unsigned half);
/* now: ms, as mrf_now_ms. */
enum mrf_pieces_room mrf_pieces_room(const struct mrf_pieces *pieces, uint64_t now);
/* The process has so many mappings. False: no more may be registered now. */
bool mrf_pieces_counted(struct mrf_pieces *pieces, unsigned mappings, uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which kept pins have ended, so that peers are told of these and ask about nothing else again. The
 * last few are remembered; a peer that was told less recently is told that all have ended.
 */
#ifndef MRF_MR_DEMAND_GONE_H
#define MRF_MR_DEMAND_GONE_H

#include <stdint.h>

struct mrf_mr_class;
struct mrf_mr_space;
struct mrf_pin;

/*
 * Bytes whose pins have ended: what was answered about them is no longer valid.
 */
struct mrf_mr_gone {
	uint64_t key; /* that was asked for */
	uint64_t pos; /* as peers have it */
	uint64_t len;
	const struct mrf_mr_class *class; /* whose peers could ask; not dereferenced */
};

#define MRF_MR_GONE 4	  /* remembered at most */
#define MRF_MR_GONE_ALL 5 /* it is not remembered which */

/* Guarded by the monitor's lock. */
struct mrf_mr_gones {
	struct mrf_mr_gone last[MRF_MR_GONE];
	uint64_t count; /* of all so far */
};

/* How many pins have ended so far. Any thread; takes the monitor's lock, as does the next one. */
uint64_t mrf_mr_gone_so_far(const struct mrf_mr_space *space);
/*
 * Those of a class that have ended since there were *told: returns how many, or MRF_MR_GONE_ALL if
 * some of any class are not remembered; sets *told.
 */
unsigned mrf_mr_gone_since(const struct mrf_mr_space *space, const struct mrf_mr_class *class,
			   uint64_t *told, struct mrf_mr_gone gone[MRF_MR_GONE]);

/* A kept pin of a region ends. */
void mrf_gone_note_locked(const struct mrf_pin *pin);

#endif

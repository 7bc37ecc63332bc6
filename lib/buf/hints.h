/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By the first page of a transfer, the entry of the cache that served the last one from
 * there. Any hint may be wrong: the entry may have ended, or be about other memory by now.
 * It is an entry still, as entries live as long as their cache. No lock is needed.
 */
#ifndef MRF_BUF_HINTS_H
#define MRF_BUF_HINTS_H

#include <stdint.h>

struct mrf_cached;

typedef struct mrf_cached *_Atomic mrf_hint_t;

struct mrf_hints {
	mrf_hint_t *slots; /* each may be NULL */
	unsigned shift;	   /* 64 less the bits of their number */
};

/* Two for each of so many entries, within a limit. -FI_ENOMEM. */
int mrf_hints_init(struct mrf_hints *hints, uint64_t entries);
void mrf_hints_fini(struct mrf_hints *hints);

/* Any distance between buffers, such as a power of two, spreads them over all slots. */
static inline mrf_hint_t *mrf_hint_of(const struct mrf_hints *hints, uint64_t start)
{
	return &hints->slots[(start * 0x9e3779b97f4a7c15u) >> hints->shift];
}

#endif

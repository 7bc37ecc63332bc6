/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pages have memory behind them? What was never used, was discarded or is swapped out has
 * none, and whoever pins it has some allocated. As with maps (base/maps.h) an answer is out
 * of date at once: it says how much is worth pinning.
 */
#ifndef MRF_BASE_PRESENT_H
#define MRF_BASE_PRESENT_H

#include <stdint.h>

/*
 * A look for all that is there. Pages with memory cost their owner a hundred times more when they
 * were first used than they do here. Those without cost nothing, and there may be terabytes of
 * them, so it is for them that patience is needed: each takes one of it, and a gap of some pages
 * no less than MRF_PRESENT_GAP, so that what is found is no endless list.
 */
struct mrf_present {
	/* A run of pages that are there; one may come in parts. An error ends the look. */
	int (*found)(void *arg, uint64_t start, uint64_t end);
	void *arg;
	uint64_t patience; /* what is left of it; 0: ended early */
};

#define MRF_PRESENT_GAP 64

/*
 * In order of address, for the pages with a byte of [start, end). If not all of it is mapped, the
 * mappings are gone through, and those that nobody can access are left out. The first error of
 * found; -FI_ENOMEM; or why /proc/self/maps cannot be read.
 */
int mrf_present_look(struct mrf_present *look, uint64_t start, uint64_t end);

/*
 * How far all pages from addr on, the beginning of a page, are there: down to the one that has
 * min, or up to the end of the one that max is in. At most 256 of them are looked at.
 */
uint64_t mrf_present_down(uint64_t addr, uint64_t min);
uint64_t mrf_present_up(uint64_t addr, uint64_t max);

#endif

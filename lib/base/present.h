/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out which pages have memory behind them. Pages that were never used, were
 * discarded or are swapped out have none, and pinning them allocates some. As with maps
 * (base/maps.h), an answer is out of date at once; it only shows how much is worth
 * pinning.
 */
#ifndef MRF_BASE_PRESENT_H
#define MRF_BASE_PRESENT_H

#include <stdint.h>

/*
 * A search for all pages with memory. Such a page cost its owner a hundred times more at
 * first use than the search costs here. Pages without memory have cost nothing, and there
 * may be terabytes of them, so patience limits how many are searched: each page uses up
 * one unit, and a gap of several pages at least MRF_PRESENT_GAP units, so that the list
 * of runs found stays short.
 */
struct mrf_present {
	/*
	 * Called for each run of pages with memory; a run may be reported in parts. An
	 * error ends the search.
	 */
	int (*found)(void *arg, uint64_t start, uint64_t end);
	void *arg;
	uint64_t patience; /* units that are left; 0: the search ended early */
};

#define MRF_PRESENT_GAP 64

/*
 * Searches the pages that overlap [start, end), in order of address. If not all of them
 * are mapped, searches mapping by mapping and skips mappings without any access right.
 * Returns the first error of found, -FI_ENOMEM, or the error of reading /proc/self/maps.
 */
int mrf_present_look(struct mrf_present *look, uint64_t start, uint64_t end);

/*
 * How far do pages with memory extend without a gap from addr, the beginning of a page?
 * down: to lower addresses, at most to the page that contains min; up: to higher
 * addresses, at most to the end of the page that contains max. At most 256 pages are
 * searched.
 */
uint64_t mrf_present_down(uint64_t addr, uint64_t min);
uint64_t mrf_present_up(uint64_t addr, uint64_t max);

#endif

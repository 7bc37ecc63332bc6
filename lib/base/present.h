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
 * How far all pages from addr on, the beginning of a page, are there: down to the one that has
 * min, or up to the end of the one that max is in. At most 256 of them are looked at.
 */
uint64_t mrf_present_down(uint64_t addr, uint64_t min);
uint64_t mrf_present_up(uint64_t addr, uint64_t max);

#endif

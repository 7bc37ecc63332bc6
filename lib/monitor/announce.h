/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranges whose mappings are being changed at the moment: a table of fixed size
 * without a lock, because those who write it hold the allocator's locks, or are signal
 * handlers, and may leave by siglongjmp (which at worst leaves an entry behind).
 *
 * All is sequentially consistent: of one that announces and then looks at a flag, and one
 * that sets the flag and then looks for announcements, at least one sees the other.
 */
#ifndef MRF_MONITOR_ANNOUNCE_H
#define MRF_MONITOR_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_ANNOUNCE_PLACES 64
#define MRF_ANNOUNCE_CROWD MRF_ANNOUNCE_PLACES /* no place was free: counted only */
#define MRF_ANNOUNCE_NONE (MRF_ANNOUNCE_PLACES + 1)

/* A number for mrf_announce_end; the range is whole pages. */
unsigned mrf_announce(uintptr_t start, uintptr_t end);
/* MRF_ANNOUNCE_NONE does nothing. */
void mrf_announce_end(unsigned place);
/* Does an announced range have a byte of this one? Anything, if some are only counted. */
bool mrf_announced(uintptr_t start, uintptr_t end);
/* Only in a forked child. */
void mrf_announce_clear(void);

#endif

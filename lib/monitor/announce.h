/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranges whose mappings are being changed at the moment: a table of fixed size
 * without a lock, because threads that write it may hold the allocator's locks, or be in
 * signal handlers, and may leave by siglongjmp (which at worst leaves an entry behind).
 *
 * All accesses are sequentially consistent: if one thread announces a range and then
 * reads a flag, and another sets the flag and then looks for announcements, at least one
 * of them sees the other's write.
 */
#ifndef MRF_MONITOR_ANNOUNCE_H
#define MRF_MONITOR_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_ANNOUNCE_PLACES 16		       /* a thread that watches looks at each */
#define MRF_ANNOUNCE_CROWD MRF_ANNOUNCE_PLACES /* no place was free: counted only */
#define MRF_ANNOUNCE_NONE (MRF_ANNOUNCE_PLACES + 1)

/* Announces a range of whole pages; returns a number for mrf_announce_end. */
unsigned mrf_announce(uintptr_t start, uintptr_t end);
/* Takes an announcement back; harmless with MRF_ANNOUNCE_NONE. */
void mrf_announce_end(unsigned place);
/* Does an announced range overlap this one? Always true while a range is only counted. */
bool mrf_announced(uintptr_t start, uintptr_t end);
/* Forgets all announcements; only in a forked child. */
void mrf_announce_clear(void);

#endif

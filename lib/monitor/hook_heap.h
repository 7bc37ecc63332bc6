/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hooked calls of the allocator, if it is the C library's own: what is a mapping of
 * its own is known before it goes; where the heap shrinks, that is seen when it has been
 * done, and reported at once. Another allocator is seen when it unmaps or discards.
 */
#ifndef MRF_MONITOR_HOOK_HEAP_H
#define MRF_MONITOR_HOOK_HEAP_H

/* Finds the originals (mrf_slots_add). libc: the C library, as dlopen returned it. */
void mrf_hook_heap_add(void *libc);
/*
 * Has the C library's allocator keep what lies at the end of its heaps: mallopt(3),
 * M_TRIM_THRESHOLD of -1. Stays until the process ends.
 */
void mrf_hook_heap_keep(void);

#endif

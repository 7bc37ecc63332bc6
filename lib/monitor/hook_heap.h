/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hooked calls of the allocator, if it is the C library's own. A block that is a mapping of
 * its own is reported before it goes; a heap that shrinks, as soon as it has shrunk. Another
 * allocator is noticed when it unmaps or discards memory.
 */
#ifndef MRF_MONITOR_HOOK_HEAP_H
#define MRF_MONITOR_HOOK_HEAP_H

/* Finds the originals (mrf_slots_add). libc: the C library, as dlopen returned it. */
void mrf_hook_heap_add(void *libc);
/*
 * Has the C library's allocator keep free memory at the end of its heaps (mallopt(3),
 * M_TRIM_THRESHOLD of -1) until the process ends.
 */
void mrf_hook_heap_keep(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/monitor: the hooked calls, by kind. */
#ifndef MRF_MONITOR_HOOKED_H
#define MRF_MONITOR_HOOKED_H

#include <stdbool.h>

/* --- calls that change mappings and do nothing else: hook_map.c --------------------- */

/* Finds the originals (mrf_slots_add). False: the program lacks one that matters. */
bool mrf_hook_map_add(void);
/* The end of the heap: sbrk(0) as the program has it. Async-signal-safe. */
char *mrf_hook_map_break(void);
/*
 * Makes the calls as a program does, in a way that changes nothing. True: each of them reached
 * its hook.
 */
bool mrf_hook_map_heard(void);

/* --- calls of the allocator: hook_heap.c -------------------------------------------- */

/*
 * Finds the originals (mrf_slots_add), if the allocator is the C library's own. libc: the C
 * library, as dlopen returned it. A block that is a mapping of its own is reported before it
 * goes; a heap that shrinks, as soon as it has shrunk. Another allocator is noticed when it
 * unmaps or discards memory.
 */
void mrf_hook_heap_add(void *libc);
/*
 * Has the C library's allocator keep free memory at the end of its heaps (mallopt(3),
 * M_TRIM_THRESHOLD of -1) until the process ends.
 */
void mrf_hook_heap_keep(void);

/* --- calls that load and unload objects: hook_load.c -------------------------------- */

/*
 * Finds the originals (mrf_slots_add). Slots of loaded objects are filled before dlopen
 * returns, or at the first dlsym after it (hook_load.c says when).
 */
void mrf_hook_load_add(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooked calls that change mappings and do nothing else. */
#ifndef MRF_MONITOR_HOOK_MAP_H
#define MRF_MONITOR_HOOK_MAP_H

#include <stdbool.h>

/* Finds the originals (mrf_slots_add). False: the program lacks one that matters. */
bool mrf_hook_map_add(void);
/* The end of the heap: sbrk(0) as the program has it. Async-signal-safe. */
char *mrf_hook_map_break(void);
/*
 * Makes the calls as a program does, in a way that changes nothing. True: each of them reached
 * its hook.
 */
bool mrf_hook_map_heard(void);

#endif

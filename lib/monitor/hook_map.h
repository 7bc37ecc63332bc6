/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooked calls that are about mappings and nothing else. */
#ifndef MRF_MONITOR_HOOK_MAP_H
#define MRF_MONITOR_HOOK_MAP_H

#include <stdbool.h>

/* Finds the originals (mrf_slots_add). False: the program has not got all that matter. */
bool mrf_hook_map_add(void);
/* The end of the heap: sbrk(0) as the program has it. Async-signal-safe. */
char *mrf_hook_map_break(void);
/*
 * Makes the calls as a program does, in a way that changes nothing: does each of them come
 * to its hook?
 */
bool mrf_hook_map_heard(void);

#endif

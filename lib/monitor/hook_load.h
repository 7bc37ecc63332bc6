/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hooked calls that load and unload objects. Slots of loaded objects are filled before
 * dlopen returns, or at the first dlsym after it (hook_load.c says when).
 */
#ifndef MRF_MONITOR_HOOK_LOAD_H
#define MRF_MONITOR_HOOK_LOAD_H

/* Finds the originals (mrf_slots_add). */
void mrf_hook_load_add(void);

#endif

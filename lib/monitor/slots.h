/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces functions by hooks in the slots (monitor/elf.h) of all loaded objects of the
 * program. No code is changed: a slot is a word of data, which is exchanged by one atomic
 * store, on a page that is made writable for that if the loader has sealed it.
 *
 * A slot is changed only while it holds what the loader has put there: the function that the
 * program's global lookup gives, or the stub of its own object that has not been resolved yet.
 * A slot that holds something else is another library's hook; it is left alone, counted, and
 * reported once. So are the slots of an object that defines the function itself, except the C
 * library, which calls free and realloc as others do.
 *
 * Objects are looked at inside MRF_GATE_LOADER (base/gate.h), where nobody maps or frees memory
 * or calls the loader but for dl_iterate_phdr.
 */
#ifndef MRF_MONITOR_SLOTS_H
#define MRF_MONITOR_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One function that is hooked. */
struct mrf_hook {
	const char *name;
	void *hook;
	void *_Atomic orig; /* what the program would call; NULL: it has none */
	uintptr_t stub;	    /* private: the executable's substitute address of it, or 0 */
};

#define MRF_SLOTS_GROUPS 4

/*
 * Finds the originals and makes the hooks known; changes no slot yet. A process has at most
 * MRF_SLOTS_GROUPS arrays, which stay where they are; adding one again does no harm. Calls the
 * loader: no lock is held.
 */
void mrf_slots_add(struct mrf_hook *hooks, unsigned n);
/*
 * Puts the hooks into the slots of objects that were loaded since the last call, and again
 * into slots where the loader has resolved a call meanwhile. Cheap if nothing was loaded.
 */
void mrf_slots_fill(void);
/*
 * As mrf_slots_fill, for an object that has just been loaded, even if others are being loaded.
 */
void mrf_slots_fill_now(void);
/* Takes the hooks out again. */
void mrf_slots_empty(void);
/* Are the hooks still in the slots of the object that this library is part of? Cheap. */
bool mrf_slots_hold(void);
/*
 * Does an object have a search path for the objects that it loads itself (DT_RUNPATH)? Does one
 * other than the executable, whose path serves everybody, have a path that these inherit
 * (DT_RPATH)?
 */
bool mrf_slots_runpath(void);
bool mrf_slots_rpath(void);
/* The number of slots that hold hooks of others. */
unsigned mrf_slots_foreign(void);
/* Called in a forked child, where the parent's other threads do not go on. */
void mrf_slots_in_child(void);

#endif

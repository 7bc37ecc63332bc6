/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of every hooked call around its change: it announces the range
 * below, makes the listeners drop what they have there, and takes the
 * announcement back when the change is made. These functions allocate and free nothing, keep
 * errno, and take no locks except those of listeners; they may run in a signal handler.
 */
#ifndef MRF_MONITOR_CHANGE_H
#define MRF_MONITOR_CHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocated statically; a listener is never removed from its process. */
struct mrf_hooks_listener {
	atomic_uint armed; /* not 0: there may be something to drop */
	/* The pages of [start, end) are about to change. May not allocate, free or map. */
	void (*changing)(uintptr_t start, uintptr_t end);
};

/* The most listeners that a process may have. */
#define MRF_HOOKS_LISTENERS 4

/*
 * The bytes of [addr, addr + len) are about to change, which concerns whole pages. Returns a
 * number for mrf_change_end.
 */
unsigned mrf_change_begin(const void *addr, size_t len);
/* As mrf_change_begin, for a change that may be anywhere. */
unsigned mrf_change_begin_all(void);
/* As mrf_change_begin, but listeners drop nothing until mrf_change_tell. */
unsigned mrf_change_announce(const void *addr, size_t len);
void mrf_change_end(unsigned place);
/* The range was changed a moment ago. */
void mrf_change_was(const void *addr, size_t len);
/* May anybody have something to drop or to forget? */
bool mrf_change_matters(void);
/* Makes the listeners drop what they have in [addr, addr + len), which is announced. */
void mrf_change_tell(const void *addr, size_t len);
/* From now on the listener is called. False: there is no room for it. */
bool mrf_change_listen(struct mrf_hooks_listener *listener);

/* --- announcements ------------------------------------------------------------------ */

/*
 * The ranges whose mappings are being changed at the moment: a table of fixed size
 * without a lock, because threads that write it may hold the allocator's locks, or be in
 * signal handlers, and may leave by siglongjmp (which at worst leaves an entry behind).
 *
 * All accesses are sequentially consistent: if one thread announces a range and then
 * reads a flag, and another sets the flag and then looks for announcements, at least one
 * of them sees the other's write.
 */
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

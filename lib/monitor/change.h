/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of every hooked call around its change: it announces the range
 * (monitor/announce.h), makes the listeners drop what they have there, and takes the
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

#endif

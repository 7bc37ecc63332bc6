/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's userfaultfd descriptors. An event says what it is about only when it is
 * read, so the more descriptors there are, the less an event may be about.
 *
 * Each chunk of MRF_UFFD_CHUNK bytes of the address space always belongs to the same
 * descriptor, because the kernel registers a mapping with one descriptor only, and watches
 * that overlap have to agree. What is registered across chunks is registered in pieces. A
 * descriptor is opened when it is first needed; where no more can be opened, chunks share
 * those that there are.
 *
 * All but mrf_uffds_wait is guarded by the monitor's lock; nothing allocates, frees or
 * maps, except mrf_uffds_open and mrf_uffds_close, which are called without the lock while
 * nothing is registered.
 */
#ifndef MRF_MONITOR_UFFDS_H
#define MRF_MONITOR_UFFDS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "monitor/uffd.h"

#define MRF_UFFD_CHUNK ((uintptr_t)2 << 20)
#define MRF_UFFDS 64		/* the most descriptors: fewer if few may be open ... */
#define MRF_UFFDS_SHARE 16	/* ... one in so many of RLIMIT_NOFILE */
#define MRF_UFFDS_WIDE UINT_MAX /* see mrf_uffds_of */

/* Opens the first descriptor. -FI_E*: userfaultfd cannot be had. */
int mrf_uffds_open(void);
/* Closes all of them; also in a forked child. */
void mrf_uffds_close(void);
bool mrf_uffds_opened(void);

/*
 * Has the kernel report what becomes of [start, end), which has to be private anonymous
 * memory without a hole. On failure *end_of_all says how far anything may be registered.
 * -FI_EINVAL: memory of another kind; -FI_EBUSY: another userfaultfd has it; -FI_EAGAIN:
 * there is a hole or the end of a mapping in a piece, or a change is under way.
 */
int mrf_uffds_register(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/* As before, in one chunk, and joined with what is registered around it, if it can be. */
int mrf_uffds_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/* Has every change in this chunk, as far as it is registered, been read or not begun? */
bool mrf_uffds_quiet(uintptr_t addr);
/* Ends that, as far as the kernel lets it. */
void mrf_uffds_unregister(uintptr_t start, uintptr_t end);
/* What was moved there stays registered with the descriptor that told of it: ends that. */
void mrf_uffds_moved(unsigned which, uintptr_t to, size_t len);
/* Where the piece ends that begins at start; not behind end. */
uintptr_t mrf_uffds_piece(uintptr_t start, uintptr_t end);
/* How many pieces a range is registered in. */
static inline unsigned long mrf_uffds_pieces(uintptr_t start, uintptr_t end)
{
	return (end - 1) / MRF_UFFD_CHUNK - start / MRF_UFFD_CHUNK + 1;
}

/*
 * The number (below MRF_UFFDS) of the descriptor that a range belongs to, or
 * MRF_UFFDS_WIDE: to more than one. Constant as long as something is registered there.
 */
unsigned mrf_uffds_of(uintptr_t start, uintptr_t end);
/* Does any of the range belong to this descriptor? */
bool mrf_uffds_has(unsigned which, uintptr_t start, uintptr_t end);

/*
 * Waits for an event, and returns the number of its descriptor; -1: mrf_uffds_stop was
 * called.
 */
int mrf_uffds_wait(void);
void mrf_uffds_stop(void);
/* Reads an event, so that the thread that caused it goes on. False: there is none. */
bool mrf_uffds_read(unsigned which, struct mrf_uffd_event *event);

#endif

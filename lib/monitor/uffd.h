/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * userfaultfd(2): this process's own has the ranges whose changes the kernel reports. Every
 * error is returned as -FI_E*. The range of an event is known only when the event has been
 * read.
 *
 * A range across chunks (monitor/ground.h) is registered in pieces, each of which lies in one
 * mapping.
 *
 * All but mrf_uffd_wait is guarded by the monitor's lock; nothing allocates, frees or
 * maps, except mrf_uffd_begin and mrf_uffd_end, which are called without the lock while
 * nothing is registered.
 */
#ifndef MRF_MONITOR_UFFD_H
#define MRF_MONITOR_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mrf_uffd_kind { MRF_UFFD_OTHER, MRF_UFFD_UNMAP, MRF_UFFD_REMOVE, MRF_UFFD_REMAP };

struct mrf_uffd_event {
	enum mrf_uffd_kind kind;
	uintptr_t start;
	uintptr_t end;
	uintptr_t to; /* remap: where it is now */
};

/*
 * Is this process running under Valgrind? Valgrind runs one thread at a time and lets no
 * other run while one is in munmap, so a thread that waits there for the monitor would
 * wait for ever. Valgrind also does not see patched code.
 */
bool mrf_under_valgrind(void);

/* Returns a non-blocking descriptor that reports unmap, remove and remap, or -FI_E*. */
int mrf_uffd_open(void);
/* Registers a range, all of which has to be mapped; -FI_EINVAL, -FI_EBUSY, -FI_ENOMEM. */
int mrf_uffd_register(int fd, uintptr_t start, size_t len);
/*
 * 0 if the whole range lies inside one mapping of private anonymous memory that is
 * registered here, and no event waits to be read. -FI_EINVAL: memory of another kind;
 * otherwise -FI_EAGAIN.
 */
int mrf_uffd_verify(int fd, uintptr_t start, size_t len);

/* --- the process's own ---------------------------------------------------------------- */

/* -FI_E*: userfaultfd cannot be used. */
int mrf_uffd_begin(void);
/* Also in a forked child. */
void mrf_uffd_end(void);
bool mrf_uffd_begun(void);

/*
 * Has the kernel report what becomes of [start, end), which has to be private anonymous
 * memory without a hole. On failure *end_of_all says how far anything may be registered.
 * -FI_EINVAL: memory of another kind; -FI_EBUSY: another userfaultfd has it; -FI_EAGAIN:
 * there is a hole or the end of a mapping in a piece, or a change is under way.
 */
int mrf_uffd_add(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/*
 * As mrf_uffd_add, in one chunk, and joined with registered memory around it if possible.
 */
int mrf_uffd_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/* Has every change of registered memory been read, or not begun? */
bool mrf_uffd_quiet(void);
/*
 * Unregisters the range. Parts that cannot be unregistered stay registered and may raise
 * events that nobody needs.
 */
void mrf_uffd_remove(uintptr_t start, uintptr_t end);

/* Waits for an event. False: mrf_uffd_stop was called. */
bool mrf_uffd_wait(void);
void mrf_uffd_stop(void);
/* Reads an event, so that the thread that caused it goes on. False: there is none. */
bool mrf_uffd_read(struct mrf_uffd_event *event);

#endif

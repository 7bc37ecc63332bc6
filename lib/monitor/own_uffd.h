/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's userfaultfd: the ranges whose changes the kernel reports. The range of an
 * event is known only when the event has been read.
 *
 * A range across chunks (monitor/ground.h) is registered in pieces, each of which lies in one
 * mapping.
 *
 * All but mrf_own_uffd_wait is guarded by the monitor's lock; nothing allocates, frees or
 * maps, except mrf_own_uffd_open and mrf_own_uffd_close, which are called without the lock while
 * nothing is registered.
 */
#ifndef MRF_MONITOR_OWN_UFFD_H
#define MRF_MONITOR_OWN_UFFD_H

#include <stdbool.h>
#include <stdint.h>
#include "monitor/uffd.h"

/* -FI_E*: userfaultfd cannot be used. */
int mrf_own_uffd_open(void);
/* Also in a forked child. */
void mrf_own_uffd_close(void);
bool mrf_own_uffd_opened(void);

/*
 * Has the kernel report what becomes of [start, end), which has to be private anonymous
 * memory without a hole. On failure *end_of_all says how far anything may be registered.
 * -FI_EINVAL: memory of another kind; -FI_EBUSY: another userfaultfd has it; -FI_EAGAIN:
 * there is a hole or the end of a mapping in a piece, or a change is under way.
 */
int mrf_own_uffd_add(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/*
 * As mrf_own_uffd_add, in one chunk, and joined with registered memory around it if possible.
 */
int mrf_own_uffd_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all);
/* Has every change of registered memory been read, or not begun? */
bool mrf_own_uffd_quiet(void);
/* Unregisters the range, as far as the kernel lets it. */
void mrf_own_uffd_remove(uintptr_t start, uintptr_t end);

/* Waits for an event. False: mrf_own_uffd_stop was called. */
bool mrf_own_uffd_wait(void);
void mrf_own_uffd_stop(void);
/* Reads an event, so that the thread that caused it goes on. False: there is none. */
bool mrf_own_uffd_read(struct mrf_uffd_event *event);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's side of the monitor: userfaultfd(2), every error as -FI_E*.
 */
#ifndef MRF_MONITOR_UFFD_H
#define MRF_MONITOR_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mrf_uffd_kind { MRF_UFFD_OTHER, MRF_UFFD_UNMAP, MRF_UFFD_REMOVE, MRF_UFFD_REMAP };

struct mrf_uffd_event {
	enum mrf_uffd_kind kind;
	uintptr_t start; /* remap: the new place */
	uintptr_t end;
};

/*
 * Valgrind runs one thread at a time, and lets no other run while one is in munmap:
 * whoever waits there for the monitor would wait for ever. What is patched it does not see.
 */
bool mrf_under_valgrind(void);

/* Non-blocking, tells of unmap, remove and remap. A descriptor, or -FI_E*. */
int mrf_uffd_open(void);
/* Pages that are there only; -FI_EINVAL, -FI_EBUSY, -FI_ENOMEM. */
int mrf_uffd_register(int fd, uintptr_t start, size_t len);
/*
 * 0 when all of the range lies inside one mapping that is registered here, and no event
 * waits to be read; else -FI_EAGAIN. trap: the address of a page that cannot be read.
 */
int mrf_uffd_verify(int fd, uintptr_t start, size_t len, uintptr_t trap);
/* What cannot be unregistered stays, and raises an event that nobody needed. */
void mrf_uffd_unregister(int fd, uintptr_t start, size_t len);
/* 1: there was an event, 0: there is none. Whoever caused it goes on. */
int mrf_uffd_read(int fd, struct mrf_uffd_event *event);

#endif

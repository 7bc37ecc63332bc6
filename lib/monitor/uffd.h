/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's side of the monitor: userfaultfd(2). Every error is returned as -FI_E*. */
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
/*
 * Is every change of what is registered here either read or not begun? Asks less than
 * mrf_uffd_verify.
 */
bool mrf_uffd_quiet(int fd);
/*
 * Parts that cannot be unregistered stay registered and may raise events that nobody
 * needs.
 */
void mrf_uffd_unregister(int fd, uintptr_t start, size_t len);
/* 1: read an event, so that the thread that caused it goes on. 0: there is none. */
int mrf_uffd_read(int fd, struct mrf_uffd_event *event);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from and to memory of the application that is not known to be mapped.
 *
 * What a call of the application hands in is read by the thread that calls, with ordinary loads
 * (take): if it is not mapped the call ends in a SIGSEGV, as memcpy would, where a debugger shows
 * who was wrong. Everything else happens later or in another thread, while the application may
 * unmap the memory at any moment (get, put): the kernel copies, and returns an error. That takes
 * one system call, or none to put something into pages that are known to be there
 * (base/known.h). If the kernel does not offer this call (built without
 * CONFIG_CROSS_MEMORY_ATTACH, or forbidden by a filter of system calls), these are ordinary
 * copies, too.
 */
#ifndef MRF_BASE_USER_H
#define MRF_BASE_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/*
 * For the thread whose call handed the ranges in, and before that returns. As mrf_user_get if one
 * of them begins below 64 KiB, as NULL does and what was computed from it, or passes the end of the
 * address space.
 */
int mrf_user_take(void *to, const struct iovec *from, size_t count);
/*
 * Copy all bytes of the ranges, one range after the other. 0, or -FI_EFAULT: a range is
 * not mapped, or may not be read or written; the bytes before it may have been copied.
 * -FI_EAGAIN: nothing was copied, because a page is not in memory, so that the copy might take
 * long or wait for another thread (userfaultfd), and may_wait is false.
 */
int mrf_user_get(void *to, const struct iovec *from, size_t count);
int mrf_user_put(const struct iovec *to, size_t count, const void *from, bool may_wait);

#endif

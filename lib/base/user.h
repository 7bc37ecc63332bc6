/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from and to memory of the application that is not known to be mapped, and that
 * another thread may unmap at any moment: the kernel copies and returns an error where an
 * ordinary copy would end in a SIGSEGV. It takes one system call, or none for pages that are
 * known to be there (base/known.h). If the kernel does not
 * offer this call (built without CONFIG_CROSS_MEMORY_ATTACH, or forbidden by a filter of
 * system calls), these are ordinary copies.
 */
#ifndef MRF_BASE_USER_H
#define MRF_BASE_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/*
 * Copy all bytes of the ranges, one range after the other. 0, or -FI_EFAULT: a range is
 * not mapped, or may not be read or written; the bytes before it may have been copied.
 * -FI_EAGAIN: nothing was copied, because a page is not in memory, so that the copy might take
 * long or wait for another thread (userfaultfd), and may_wait is false.
 */
int mrf_user_get(void *to, const struct iovec *from, size_t count);
int mrf_user_put(const struct iovec *to, size_t count, const void *from, bool may_wait);

#endif

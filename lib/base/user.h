/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the application that nobody has shown to be there, and that another thread may unmap
 * at any moment: the kernel copies, and says so where an instruction of ours would end in a
 * SIGSEGV. It is one system call. Where the kernel does not offer that (it was built without
 * CONFIG_CROSS_MEMORY_ATTACH, or a filter of system calls forbids it) these are ordinary copies.
 */
#ifndef MRF_BASE_USER_H
#define MRF_BASE_USER_H

#include <stddef.h>
#include <sys/uio.h>

/*
 * All bytes of the ranges, one behind the other. 0, or -FI_EFAULT: a range is not there, or may
 * not be read or written; the bytes before it may have been copied.
 */
int mrf_user_get(void *to, const struct iovec *from, size_t count);
int mrf_user_put(const struct iovec *to, size_t count, const void *from);

#endif

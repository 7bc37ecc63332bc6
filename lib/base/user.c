/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "base/known.h"
#include "base/lock.h"
#include "base/page.h"
#include "base/user.h"

static void copy_in(char *to, const struct iovec *from, size_t count)
{
	for (; count--; to += from++->iov_len) {
		if (from->iov_len)
			memcpy(to, from->iov_base, from->iov_len);
	}
}

static void copy_out(const struct iovec *to, size_t count, const char *from)
{
	for (; count--; from += to++->iov_len) {
		if (to->iov_len)
			memcpy(to->iov_base, from, to->iov_len);
	}
}

/* The kernel has not copied all bytes: is that because the memory is not there? */
static bool is_fault(ssize_t copied)
{
	return copied >= 0 || errno == EFAULT;
}

int mrf_user_get(void *to, const struct iovec *from, size_t count)
{
	struct iovec here = { .iov_base = to, .iov_len = mrf_iov_total(from, count) };
	ssize_t copied;

	mrf_slow_call();
	copied = process_vm_readv(getpid(), &here, 1, from, count, 0);
	if (mrf_likely(copied == (ssize_t)here.iov_len))
		return 0;
	if (is_fault(copied))
		return -FI_EFAULT;
	copy_in(to, from, count);
	return 0;
}

/* The kernel lets only privileged processes map anything below (vm.mmap_min_addr of most systems). */
#define LOWEST 65536u

static bool is_bad(const struct iovec *iov)
{
	uintptr_t addr = (uintptr_t)iov->iov_base;

	return iov->iov_len && (addr < LOWEST || !mrf_range_ok(addr, iov->iov_len));
}

int mrf_user_take(void *to, const struct iovec *from, size_t count)
{
	size_t i;

	mrf_slow_call();
	for (i = 0; i < count; i++) {
		if (mrf_unlikely(is_bad(&from[i])))
			return mrf_user_get(to, from, count);
	}
	copy_in(to, from, count);
	return 0;
}

/*
 * Are the pages in memory? Where some are not mapped at all nothing is waited for, either: a copy
 * fails at once, before a thread that would start for it gets its stack mapped there. (A write to
 * pages that are there waits nonetheless where userfaultfd protects them, or reports minor faults.)
 */
static bool is_there(uintptr_t addr, size_t len)
{
	uintptr_t mask = mrf_page_size() - 1, at = addr & ~mask, end = (addr + len + mask) & ~mask;
	unsigned char vec[64];
	size_t n, i;

	for (; at < end; at += n * (mask + 1)) {
		n = mrf_min((end - at) / (mask + 1), sizeof(vec));
		if (mincore((void *)at, n * (mask + 1), vec))
			return true;
		for (i = 0; i < n; i++) {
			if (!(vec[i] & 1))
				return false;
		}
	}
	return true;
}

static bool are_there(const struct iovec *iov, size_t count)
{
	for (; count--; iov++) {
		if (iov->iov_len && !is_there((uintptr_t)iov->iov_base, iov->iov_len))
			return false;
	}
	return true;
}

int mrf_user_put(const struct iovec *to, size_t count, const void *from, bool may_wait)
{
	struct iovec here = { .iov_base = (void *)from, .iov_len = mrf_iov_total(to, count) };
	ssize_t copied;

	mrf_slow_call();
	if (mrf_likely(count == 1 && mrf_known_put(to->iov_base, from, to->iov_len)))
		return 0;
	if (!may_wait && !are_there(to, count))
		return -FI_EAGAIN;
	copied = process_vm_writev(getpid(), &here, 1, to, count, 0);
	if (mrf_likely(copied == (ssize_t)here.iov_len)) {
		/* The pages of a buffer that is alone may be worth knowing. */
		if (count == 1)
			mrf_known_used(to->iov_base, to->iov_len);
		return 0;
	}
	if (is_fault(copied))
		return -FI_EFAULT;
	copy_out(to, count, from);
	return 0;
}

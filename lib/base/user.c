/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "base/lock.h"
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
	ssize_t copied = process_vm_readv(getpid(), &here, 1, from, count, 0);

	mrf_slow_call();
	if (mrf_likely(copied == (ssize_t)here.iov_len))
		return 0;
	if (is_fault(copied))
		return -FI_EFAULT;
	copy_in(to, from, count);
	return 0;
}

int mrf_user_put(const struct iovec *to, size_t count, const void *from)
{
	struct iovec here = { .iov_base = (void *)from, .iov_len = mrf_iov_total(to, count) };
	ssize_t copied = process_vm_writev(getpid(), &here, 1, to, count, 0);

	mrf_slow_call();
	if (mrf_likely(copied == (ssize_t)here.iov_len))
		return 0;
	if (is_fault(copied))
		return -FI_EFAULT;
	copy_out(to, count, from);
	return 0;
}

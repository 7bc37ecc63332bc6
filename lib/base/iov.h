/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Overflow-safe arithmetic on address ranges and iovecs. Pure.
 */
#ifndef MRF_BASE_IOV_H
#define MRF_BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* True when [addr, addr + len) does not pass the end of the 64-bit address space. */
static inline bool mrf_range_ok(uint64_t addr, uint64_t len)
{
	return len <= UINT64_MAX - addr;
}

/* True when [addr, addr + len) lies inside [base, base + size). */
static inline bool mrf_range_inside(uint64_t addr, uint64_t len, uint64_t base, uint64_t size)
{
	return addr >= base && len <= size && addr - base <= size - len;
}

/* Sum of the lengths, or -1 cast to size_t when it does not fit. */
static inline size_t mrf_iov_total(const struct iovec *iov, size_t count)
{
	size_t total = 0, i;

	for (i = 0; i < count; i++) {
		if (__builtin_add_overflow(total, iov[i].iov_len, &total))
			return SIZE_MAX;
	}
	return total;
}

#endif

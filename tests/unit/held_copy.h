/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between the target's host and its device can be held (device_fixture.h), and those to the
 * device that succeed are told to STORED(address, length), if that is defined. Included once, by
 * programs that are linked with --wrap=mrf_mr_device_copy.
 */
#ifndef HELD_COPY_H
#define HELD_COPY_H

#include "device_fixture.h"

#ifndef STORED
#define STORED(addr, len) ((void)0)
#endif

int __real_mrf_mr_device_copy(const struct mrf_mr *mr, bool in, uint64_t addr, void *host,
			      uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_copy(const struct mrf_mr *mr, bool in, uint64_t addr, void *host,
			      uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_copy(const struct mrf_mr *mr, bool in, uint64_t addr, void *host,
			      uint64_t len, struct mrf_hmem_why *why)
{
	int ret;

	pass();
	ret = __real_mrf_mr_device_copy(mr, in, addr, host, len, why);
	if (in && !ret)
		STORED(addr, len);
	return ret;
}

#endif

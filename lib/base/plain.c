/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/maps.h"
#include "base/page.h"
#include "base/plain.h"

/* --- from Linux 6.11 on ------------------------------------------------------------- */

/* In one mapping. *known: the kernel has answered. */
static bool is_mapped(uint64_t start, uint64_t end, bool write, bool *known)
{
	struct mrf_mapping mapping;
	int ret = mrf_maps_query(start, &mapping);

	*known = ret != -ENOSYS;
	return !ret && mapping.start <= start && mapping.end >= end &&
	       mrf_maps_pinnable(&mapping, write);
}

/* --- before --------------------------------------------------------------------------- */

/* More than these are asked about sooner by reading the mappings. */
#define PAGES 16

/*
 * Queues of RDMA devices are mapped, may be written, and can be pinned; but the kernel does not
 * know their pages as a file's or a process's. This is what distinguishes them where a futex is
 * looked up that other processes may share. The call that looks it up twice and does nothing with
 * it moves no waiter from the one to the other.
 */
static bool page_belongs(uint64_t page)
{
	return !syscall(SYS_futex, page, FUTEX_REQUEUE, 0, 0, page, 0);
}

static bool all_there(uint64_t start, uint64_t end, bool write)
{
	uint64_t size = mrf_page_size(), page = start & ~(size - 1);

	if (end - page > PAGES * size)
		return false;
	for (; page < end; page += size) {
		if (mrf_page_fault_in(page, write) || !page_belongs(page))
			return false;
	}
	return true;
}

bool mrf_plain(uint64_t start, uint64_t end, bool write)
{
	int err = errno;
	bool known, plain = is_mapped(start, end, write, &known);

	if (!known)
		plain = all_there(start, end, write);
	errno = err;
	return plain;
}

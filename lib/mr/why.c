/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
#include "mr/access.h"
#include "mr/demand/unpin.h"
#include "mr/filemem.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/why.h"

static int why_fault(const void *addr, size_t len, unsigned rights, int err)
{
	bool write = rights & MRF_RIGHTS_WRITE;
	char text[MRF_PAGE_TEXT];
	int lookup;

	if (!addr)
		return mrf_refuse(-err, FI_LOG_MR, 3014,
				  "buf=NULL, len=%zu: memory must be there when it is "
				  "registered, because FI_MR_ALLOCATED is in force",
				  len);
	if (write && !mrf_pmem_why_not((uintptr_t)addr, len, &lookup))
		return mrf_refuse(-err, FI_LOG_MR, 3281,
				  "%p + %zu byte%s cannot be pinned for writing: it is a "
				  "shared mapping of a file, which newer kernels pin for "
				  "reading only (6.1 pins it, 6.12 does not)",
				  addr, len, MRF_S(len));
	mrf_page_explain(addr, len, write, text, sizeof(text));
	return mrf_refuse(-err, FI_LOG_MR, write ? 3015 : 3016,
			  "%p + %zu byte%s cannot be pinned for %s: %s", addr, len, MRF_S(len),
			  write ? "writing" : "reading", text);
}

static int why_memory(const struct mrf_mr_space *space, const void *addr, size_t len, int err)
{
	char limit[160] = "";
	char text[MRF_PAGE_TEXT];

	mrf_page_explain_memlock(len, text, sizeof(text));
	if (mrf_vmr_cut((uintptr_t)addr, len) < len)
		snprintf(limit, sizeof(limit),
			 "; newer kernels (6.12, not 6.1) take at most %d pages at a time, and a "
			 "region is of at most %d such pieces",
			 MRF_VMR_PAGES, MRF_MR_IOV_LIMIT);
	else if (space->max_mr)
		snprintf(limit, sizeof(limit), "; the device's limit is %zu region%s",
			 space->max_mr, MRF_S(space->max_mr));
	return mrf_refuse(-err, FI_LOG_MR, 3018, "%p + %zu byte%s cannot be pinned: %s%s", addr,
			  len, MRF_S(len), text, limit);
}

int mrf_mr_why(const struct mrf_mr_space *space, const void *addr, size_t len, unsigned rights,
	       int err)
{
	switch (err) {
	case -FI_EFAULT:
		return why_fault(addr, len, rights, err);
	case -FI_ENOMEM:
	case -FI_EPERM:
		return why_memory(space, addr, len, err);
	case -FI_ENOSPC:
		return mrf_refuse(FI_ENOSPC, FI_LOG_MR, 3064,
				  "%p + %zu byte%s: the peer that wants this memory has had "
				  "%u pieces pinned for accesses that it has not ended",
				  addr, len, MRF_S(len), MRF_MR_LEASE_PINS);
	case -FI_EINVAL:
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3019,
				  "%p + %zu byte%s: the device refuses a region of this address "
				  "and length",
				  addr, len, MRF_S(len));
	default:
		return mrf_refuse(-err, FI_LOG_MR, 3020,
				  "%p + %zu byte%s: the device failed to register this memory",
				  addr, len, MRF_S(len));
	}
}

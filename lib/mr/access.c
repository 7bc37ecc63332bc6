/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "mr/access.h"
#include "mr/region.h"
#include "mr/space.h"

/*
 * Applications hand in capabilities along with the rights, often all of fi_info.caps.
 * They grant nothing and take nothing away. Bits that change a registration when given
 * as flags (FI_RMA_EVENT, FI_RMA_PMEM, FI_HMEM_DEVICE_ONLY) are not among them: there
 * they are a mistake.
 */
#define TOLERATED                                                                                 \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_COLLECTIVE | FI_MULTI_RECV | \
	 FI_TRIGGER | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SOURCE | FI_SOURCE_ERR |     \
	 FI_DIRECTED_RECV | FI_NAMED_RX_CTX)

enum { WARNED_NO_RIGHT = 1 << 0, WARNED_CAPS = 1 << 1 };

uint64_t mrf_mr_access_tolerated(uint64_t access)
{
	return access & TOLERATED;
}

uint64_t mrf_mr_access_unknown(uint64_t access)
{
	return access & ~(MRF_MR_RIGHTS | TOLERATED);
}

static bool first_time(struct mrf_mr_space *space, unsigned which)
{
	return !(atomic_fetch_or(&space->warned, which) & which);
}

void mrf_mr_access_warn(struct mrf_mr_space *space, uint64_t access)
{
	uint64_t caps = mrf_mr_access_tolerated(access);

	if (caps && first_time(space, WARNED_CAPS))
		mrf_warn(FI_LOG_MR, 3008,
			 "access=%#lx: bits %#lx are capabilities, not access rights; "
			 "ignored (said once per domain)",
			 access, caps);
	if (!(access & MRF_MR_RIGHTS) && first_time(space, WARNED_NO_RIGHT))
		mrf_warn(FI_LOG_MR, 3006,
			 "access=%#lx grants no right: the region is of no use "
			 "(said once per domain)",
			 access);
}

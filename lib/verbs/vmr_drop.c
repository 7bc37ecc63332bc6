/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "verbs/verbs.h"

/*
 * The region grants nothing to peers, and it ends with the domain's device at the latest,
 * so nothing more has to be done.
 */
void mrf_vmr_drop(struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_dereg(vmr);

	if (ret)
		mrf_warn(FI_LOG_MR, 3490,
			 "the kernel did not release a memory region of the library's "
			 "own: error %d",
			 -ret);
	vmr->handle = NULL;
}

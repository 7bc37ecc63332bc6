/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "verbs/verbs.h"

/* It ends with the domain's device at the latest, so it need not be tried again. */
bool mrf_vmr_drop(struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_dereg(vmr);

	if (ret)
		mrf_warn(FI_LOG_MR, 3490,
			 "the kernel did not release a memory region of the library's "
			 "own: error %d",
			 -ret);
	vmr->handle = NULL;
	return !ret;
}

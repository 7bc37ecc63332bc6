/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are not pinned when they are registered: on demand, or disabled until
 * fi_mr_enable. Where FI_MR_ALLOCATED asks that memory be there at registration but
 * nothing is to be pinned yet, it is pinned and let go at once, so that the refusal comes
 * where fi_mr(3) says.
 */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/access.h"
#include "mr/attr.h"
#include "mr/demand/back.h"
#include "mr/demand/present.h"
#include "mr/pins.h"
#include "mr/space.h"
#include "mr/unpinned.h"

/* Makes the backing that will hold the peers' pins. NULL: no memory. */
static struct mrf_mr_back *new_back(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
				    const struct mrf_mr_pins *pins)
{
	struct mrf_mr_back *back = mrf_mr_back_new(space, mrf_mr_access_kernel(space, plan->access),
						   pins->seg, pins->nseg);

	if (!back || !mrf_mr_back_present(back))
		return back;
	mrf_mr_back_put(back);
	return NULL;
}

int mrf_mr_unpinned(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
		    struct mrf_mr_pins *pins, struct mrf_mr_back **back)
{
	unsigned i;
	int ret;

	/*
	 * Pinning follows in a moment and checks the same; without a right nothing is
	 * pinned.
	 */
	if (!plan->device && !plan->pending && !(plan->at_once && !plan->demand && plan->access)) {
		ret = mrf_mr_check_memory(space, pins->seg, pins->nseg, plan->access);
		if (ret)
			return ret;
	}
	for (i = 0; i < pins->nseg; i++) {
		pins->vmr[i] = (struct mrf_vmr){ 0 };
		pins->seg[i].rkey = pins->seg[i].lkey = 0;
	}
	*back = NULL;
	if (!plan->demand || plan->device)
		return 0;
	*back = new_back(space, plan, pins);
	return *back ? 0
		     : mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
}

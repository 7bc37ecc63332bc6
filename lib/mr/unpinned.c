/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/demand/back.h"

int mrf_mr_check_memory(const struct mrf_mr_space *space, const struct mrf_mr_seg *segs,
			unsigned nseg, uint64_t access)
{
	struct mrf_mr_pins pins;
	unsigned rights;
	int ret;

	if (!(space->mode & FI_MR_ALLOCATED))
		return 0;
	/* Nobody is let through meanwhile. */
	rights = mrf_mr_access_kernel(space, access) & MRF_RIGHTS_WRITE
			 ? MRF_RIGHT_LOCAL_WRITE
			 : 0;
	ret = mrf_mr_pin(space, space->pd, segs, nseg, rights, &pins);
	if (!ret)
		mrf_mr_unpin(&pins);
	return ret;
}

/* What holds the pins that peers will need. NULL: no memory. */
static struct mrf_mr_back *new_back(struct mrf_mr_space *space,
				    const struct mrf_mr_plan *plan,
				    const struct mrf_mr_pins *pins)
{
	struct mrf_mr_back *back =
		mrf_mr_back_new(space, mrf_mr_access_kernel(space, plan->access), pins->seg,
				pins->nseg);

	if (!back || !back->notify || !(space->mode & FI_MR_ALLOCATED) ||
	    !mrf_mr_back_present(back))
		return back;
	mrf_mr_back_put(back);
	return NULL;
}

int mrf_mr_register_unpinned(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			     const struct mrf_mr_plan *plan, struct mrf_mr_pins *pins,
			     struct fid_mr **out)
{
	struct mrf_mr_back *back = NULL;
	unsigned i;
	int ret;

	/* That it is pinned in a moment is as good; without a right it is not. */
	if (!plan->pending && !(plan->at_once && !plan->demand && plan->access)) {
		ret = mrf_mr_check_memory(space, pins->seg, pins->nseg, plan->access);
		if (ret)
			return ret;
	}
	for (i = 0; i < pins->nseg; i++) {
		pins->vmr[i] = (struct mrf_vmr){ 0 };
		pins->seg[i].rkey = pins->seg[i].lkey = 0;
	}
	if (plan->demand) {
		back = new_back(space, plan, pins);
		if (!back)
			return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022,
					  "no memory for a region");
	}
	ret = mrf_mr_publish(space, attr, plan, pins, back, out);
	if (ret && back)
		mrf_mr_back_put(back);
	return ret;
}

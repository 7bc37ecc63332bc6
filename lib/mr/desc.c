/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/desc.h"
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/space.h"

static void copy_region(const struct mrf_mr *mr, struct mrf_desc *out)
{
	out->access = MRF_MR_GET(mr->access);
	out->nseg = MRF_MR_GET(mr->nseg);
	out->segs = MRF_MR_GET(mr->segs);
	if (out->nseg == 1)
		out->segs = NULL;
	out->seg.addr = MRF_MR_GET(mr->seg.addr);
	out->seg.len = MRF_MR_GET(mr->seg.len);
	out->seg.iova = MRF_MR_GET(mr->seg.iova);
	out->seg.rkey = MRF_MR_GET(mr->seg.rkey);
	out->seg.lkey = MRF_MR_GET(mr->seg.lkey);
}

bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc, struct mrf_desc *out)
{
	const struct mrf_mr *mr = mrf_desc_find(space->pool, desc);

	if (!mr)
		return false;
	copy_region(mr, out);
	return mrf_desc_still(mr, desc);
}

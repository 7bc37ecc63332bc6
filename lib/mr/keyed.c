/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/face.h"

static int find_group(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		      struct mrf_mr_group **group)
{
	int ret = mrf_mr_group_get(space, attr->auth_key, attr->auth_key_size, group);

	if (!ret)
		return 0;
	return mrf_refuse(-ret, FI_LOG_MR, 3203,
			  "no memory or no protection domain for another authorization key");
}

/* It is nobody's yet. */
static int enable(struct fid_mr *fid)
{
	int ret = mrf_mr_enable(mrf_mr_from_fid(&fid->fid));

	if (ret)
		fi_close(&fid->fid);
	return ret;
}

int mrf_mr_register_keyed(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  struct mrf_mr_plan *plan, struct mrf_mr_pins *pins,
			  struct fid_mr **out)
{
	struct fid_mr *fid = NULL;
	int ret;

	ret = find_group(space, attr, &plan->group);
	if (ret)
		return ret;
	/* What a region of several protection domains needs is made when it is enabled. */
	plan->at_once = plan->group && !plan->deferred && !space->worker;
	plan->deferred |= plan->at_once;
	ret = mrf_mr_register_planned(space, attr, plan, pins, plan->at_once ? &fid : out);
	if (ret)
		mrf_mr_group_put(plan->group);
	if (ret || !plan->at_once)
		return ret;
	ret = enable(fid);
	if (!ret)
		*out = fid;
	return ret;
}

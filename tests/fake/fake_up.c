/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "fake_up.h"

static int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		       void *context)
{
	(void)domain, (void)info, (void)ep, (void)context;
	return -FI_ENOSYS;
}

struct mrf_domain_up fake_up = { .endpoint = no_endpoint };

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return mrf_fabric_open(attr, &fake_up, fabric, context);
}

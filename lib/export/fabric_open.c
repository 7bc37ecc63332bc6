/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "ep/ep_open.h"
#include "ep/eps.h"
#include "export/fabric_open.h"

/*
 * Provides what the layers below leave open: domains open endpoints, and end what these share.
 */
static const struct mrf_domain_up above_domain = {
	.endpoint = mrf_ep_open,
	.cache_stats = mrf_eps_cache_stats,
	.eps_close = mrf_eps_close,
};

int mrf_hosted_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return mrf_fabric_open(attr, &above_domain, fabric, context);
}

MRF_EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return mrf_hosted_fabric(attr, fabric, context);
}

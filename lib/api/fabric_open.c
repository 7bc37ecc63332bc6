/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "domain/domain.h"

MRF_EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			 void *context)
{
	return mrf_fabric_open(attr, attr ? attr->api_version : 0, fabric, context);
}

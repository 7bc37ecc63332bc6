/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrfab.h>
#include "base/log.h"
#include "domain/domain.h"
#include "domain/domain_ext.h"

static int cache_stats(struct fid_domain *fid, struct fi_mrfab_cache_stats *stats)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	int ret = mrf_obj_check(&domain->obj, "stats of " FI_MRFAB_CACHE_OPS);
	struct mrf_eps *eps;

	if (ret)
		return ret;
	if (!stats)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2180,
				  "stats of " FI_MRFAB_CACHE_OPS ": stats is NULL");
	mrf_lock_take(&domain->lock);
	eps = domain->eps;
	mrf_lock_release(&domain->lock);
	*stats = (struct fi_mrfab_cache_stats){ 0 };
	if (eps)
		domain->fabric->up->cache_stats(eps, stats);
	return 0;
}

static struct fi_ops_mrfab_cache cache_ops = { .size = sizeof(cache_ops), .stats = cache_stats };

int mrf_domain_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context)
{
	if (!name || strcmp(name, FI_MRFAB_CACHE_OPS))
		return mrf_no_ops_open(fid, name, flags, ops, context);
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_DOMAIN, 2181,
				  "fi_open_ops(\"%s\"): flags=%#llx: must be 0", name,
				  (unsigned long long)flags);
	if (!ops)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2182,
				  "fi_open_ops(\"%s\"): ops is NULL", name);
	*ops = &cache_ops;
	return 0;
}

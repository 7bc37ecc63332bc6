/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_domain_bind: the event queue that reports registrations. Without FI_REG_MR it would
 * be the default for events of endpoints, of which there are none here: it is held, and
 * nothing else.
 */
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "base/log.h"
#include "base/thread.h"
#include "domain/domain.h"
#include "domain/domain_bind.h"
#include "mr/worker.h"
#include "obj/eq.h"

static int refuse_kind(const struct fid *fid, const struct fid *bfid)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2141,
			  "fi_domain_bind(domain %p, %s %p): only an event queue can be "
			  "bound to a domain",
			  (const void *)fid, bfid ? mrf_obj_class_name(bfid->fclass) : "fid",
			  (const void *)bfid);
}

static int check_queue(const struct mrf_domain *domain, const struct fid *bfid, uint64_t flags,
		       const struct mrf_eq *eq)
{
	if (!eq)
		return refuse_kind(&domain->fid.fid, bfid);
	if (flags & ~FI_REG_MR)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_DOMAIN, 2142,
				  "fi_domain_bind: flags=%#llx: must be 0 or FI_REG_MR",
				  (unsigned long long)flags);
	if (!mrf_eq_is_of(eq, &domain->fabric->obj))
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2161,
				  "fi_domain_bind(domain %p, event queue %p): the event "
				  "queue belongs to another fabric than the domain",
				  (const void *)&domain->fid, (const void *)bfid);
	return 0;
}

static int refuse_again_locked(const struct mrf_domain *domain, const struct fid *bfid)
{
	mrf_lock_held(&domain->lock);
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2160,
			  "fi_domain_bind(domain %p, event queue %p): the domain is "
			  "already bound to event queue %p",
			  (const void *)&domain->fid, (const void *)bfid,
			  (const void *)domain->eq.target->fid);
}

static int report_to(struct mrf_domain *domain, struct mrf_eq *eq)
{
	int ret = mrf_mr_space_report_to(&domain->space, eq);

	if (ret == -FI_EOPBADSTATE)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_DOMAIN, 2162,
				  "fi_domain_bind(domain %p, FI_REG_MR): the domain has "
				  "regions already: bind the event queue before the "
				  "first one is registered",
				  (const void *)&domain->fid);
	if (ret)
		return mrf_refuse(mrf_thread_err(ret), FI_LOG_DOMAIN, 2163,
				  "fi_domain_bind: the thread that registers cannot be "
				  "started: %s",
				  mrf_limit_text(ret));
	return 0;
}

int mrf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_domain *domain = mrf_container_of(fid, struct mrf_domain, fid.fid);
	struct mrf_eq *eq = mrf_eq_from_fid(bfid);
	int ret;

	ret = mrf_obj_check(&domain->obj, "fi_domain_bind");
	if (!ret)
		ret = check_queue(domain, bfid, flags, eq);
	if (ret)
		return ret;
	mrf_lock_take(&domain->lock);
	if (domain->eq.target)
		ret = refuse_again_locked(domain, bfid);
	else if (flags)
		ret = report_to(domain, eq);
	if (!ret)
		mrf_obj_hold(&domain->eq, mrf_eq_obj(eq), fid, domain->obj.describe);
	mrf_lock_release(&domain->lock);
	return ret;
}

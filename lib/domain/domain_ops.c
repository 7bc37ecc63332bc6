/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrfab.h>
#include "atomic/atomic.h"
#include "base/compiler.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/names.h"
#include "base/thread.h"
#include "contract/limits.h"
#include "domain/domain.h"
#include "domain/domain_int.h"
#include "domain/faults.h"
#include "mr/profiled.h"
#include "mr/worker.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/eq.h"

static int refuse_av_type(const struct mrf_domain *domain, const struct fi_av_attr *attr)
{
	const struct mrf_profile *profile = domain->space.profile;

	return mrf_refuse(
		FI_EINVAL, FI_LOG_AV, 2235,
		"fi_av_attr.type=%s: fi_getinfo was asked for %s, and FI_MRFAB_PROFILE=%s "
		"(%s) has no other type then",
		mrf_names_enum(&mrf_names_av_type, attr->type),
		mrf_names_enum(&mrf_names_av_type, domain->av_type), profile->name, profile->what);
}

static int take_av_map(const struct mrf_profile *profile, struct fi_av_attr *attr)
{
	if (attr->type == FI_AV_TABLE)
		return mrf_refuse(
			profile->no_tables, FI_LOG_AV, 2236,
			"fi_av_attr.type=FI_AV_TABLE: address vectors are of type FI_AV_MAP "
			"with FI_MRFAB_PROFILE=%s (%s)",
			profile->name, profile->what);
	attr->type = FI_AV_MAP;
	return 0;
}

/* As the profile has it. */
static int take_av_type(const struct mrf_domain *domain, struct fi_av_attr *attr)
{
	const struct mrf_profile *profile = domain->space.profile;
	enum fi_av_type has = domain->av_type ? domain->av_type : FI_AV_TABLE;
	enum fi_av_type asked = attr->type ? attr->type : FI_AV_TABLE;

	switch (profile ? profile->av : MRF_AV_ASKED) {
	case MRF_AV_ASKED:
		return 0;
	case MRF_AV_HINTED:
		return domain->av_type && asked != has ? refuse_av_type(domain, attr) : 0;
	case MRF_AV_DOMAIN:
		attr->type = has;
		return 0;
	case MRF_AV_MAPS:
	case MRF_AV_MAPS_ONLY:
		return take_av_map(profile, attr);
	case MRF_AV_TABLES:
		break;
	}
	attr->type = FI_AV_TABLE;
	return 0;
}

static int open_av(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **av,
		   void *context)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	uint32_t format = domain->addr.sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	const struct mrf_profile *profile = domain->space.profile;
	int ret = mrf_obj_check(&domain->obj, "fi_av_open");

	if (!ret && attr)
		ret = take_av_type(domain, attr);
	if (!ret)
		ret = mrf_av_open(&domain->obj, format, attr, av, context);
	if (!ret)
		mrf_av_take_profile(*av, domain->form, profile);
	return ret;
}

static int open_cq(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	int ret = mrf_obj_check(&domain->obj, "fi_cq_open");

	if (!ret)
		ret = mrf_cq_open(&domain->obj, attr, cq, context);
	if (!ret && domain->space.faults)
		mrf_faults_of_cq(domain->space.faults, *cq);
	return ret;
}

static int open_cntr(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		     void *context)
{
	struct mrf_obj *domain = &mrf_domain_from_fid(fid)->obj;
	int ret = mrf_obj_check(domain, "fi_cntr_open");

	return ret ? ret : mrf_cntr_open(domain, attr, cntr, context);
}

static int open_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	int ret = mrf_obj_check(&domain->obj, "fi_endpoint");

	return ret ? ret : domain->fabric->up->endpoint(fid, info, ep, context);
}

static int open_ep2(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep,
		    uint64_t flags, void *context)
{
	if (flags & FI_PEER)
		return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2132,
				  "fi_endpoint2: flags=%#lx: FI_PEER is not offered", flags);
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_DOMAIN, 2133,
				  "fi_endpoint2: flags=%#lx: there is no such flag", flags);
	return open_ep(fid, info, ep, context);
}

static int open_scalable_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **sep,
			    void *context)
{
	(void)fid, (void)info, (void)sep, (void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2134,
			  "fi_scalable_ep: scalable endpoints are not offered: "
			  "max_ep_tx_ctx and max_ep_rx_ctx are 1");
}

static int open_poll(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	(void)fid, (void)attr, (void)pollset;
	return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2135,
			  "fi_poll_open: poll sets are not offered: read the queues one by one");
}

static int open_stx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **stx,
		    void *context)
{
	(void)fid, (void)attr, (void)stx, (void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2136,
			  "fi_stx_context: shared transmit contexts are not offered: "
			  "max_ep_stx_ctx is 0");
}

static int open_srx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **srx,
		    void *context)
{
	(void)fid, (void)attr, (void)srx, (void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2137,
			  "fi_srx_context: shared receive contexts are not offered: "
			  "max_ep_srx_ctx is 0");
}

/* contract/promise.h has tables by family. */
_Static_assert(MRF_ATOMIC_BASE == 0 && MRF_ATOMIC_FETCH == 1 && MRF_ATOMIC_COMPARE == 2,
	       "families in another order");

static int query_atomic(struct fid_domain *fid, enum fi_datatype datatype, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags)
{
	const struct mrf_promise *promise = mrf_domain_from_fid(fid)->promise;
	enum mrf_atomic_family family = flags & FI_COMPARE_ATOMIC ? MRF_ATOMIC_COMPARE
					: flags & FI_FETCH_ATOMIC ? MRF_ATOMIC_FETCH
								  : MRF_ATOMIC_BASE;
	int ret = mrf_obj_check(&mrf_domain_from_fid(fid)->obj, "fi_query_atomic");

	if (ret)
		return ret;
	if (!attr)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2170, "fi_query_atomic: attr is NULL");
	if (flags & FI_TAGGED)
		return mrf_decline(FI_EOPNOTSUPP, FI_LOG_DOMAIN, 2171,
				   "fi_query_atomic: FI_TAGGED: tagged atomic operations are "
				   "not offered");
	if (flags != 0 && flags != FI_FETCH_ATOMIC && flags != FI_COMPARE_ATOMIC)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_DOMAIN, 2172,
				  "fi_query_atomic: flags must be 0, "
				  "FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC, not %#lx",
				  flags);
	if (!mrf_atomic_valid(family, datatype, op))
		return mrf_decline(FI_EOPNOTSUPP, FI_LOG_DOMAIN, 2173,
				   "fi_query_atomic: %s on %s, flags=%#lx: there is no such "
				   "operation",
				   mrf_names_enum(&mrf_names_atomic_op, op),
				   mrf_names_enum(&mrf_names_atomic_type, datatype), flags);
	ret = mrf_promise_atomic(promise, family, datatype, op);
	if (ret)
		return mrf_decline(ret, FI_LOG_DOMAIN, 2174,
				   "fi_query_atomic: %s on %s, flags=%#lx: there is no such "
				   "operation with FI_MRFAB_PROFILE=%s",
				   mrf_names_enum(&mrf_names_atomic_op, op),
				   mrf_names_enum(&mrf_names_atomic_type, datatype), flags,
				   mrf_domain_from_fid(fid)->space.profile->name);
	attr->size = mrf_atomic_size(datatype);
	attr->count = mrf_promise_elements(promise, MRF_LIMIT_ATOMIC_SIZE / attr->size);
	return 0;
}

static int query_collective(struct fid_domain *fid, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	(void)fid, (void)attr, (void)flags;
	return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2139,
			  "fi_query_collective(%d): FI_COLLECTIVE is not offered", (int)coll);
}

struct fi_ops_domain mrf_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = open_av,
	.cq_open = open_cq,
	.endpoint = open_ep,
	.scalable_ep = open_scalable_ep,
	.cntr_open = open_cntr,
	.poll_open = open_poll,
	.stx_ctx = open_stx,
	.srx_ctx = open_srx,
	.query_atomic = query_atomic,
	.query_collective = query_collective,
	.endpoint2 = open_ep2,
};

/* --- fi_domain_bind -------------------------------------------------------------------- */

static int refuse_kind(const struct fid *fid, const struct fid *bfid)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2141,
			  "fi_domain_bind(domain %p, %s %p): only an event queue can be "
			  "bound to a domain",
			  (const void *)fid, bfid ? mrf_obj_class_name(bfid->fclass) : "fid",
			  (const void *)bfid);
}

static int check_queue(const struct mrf_domain *domain, const struct fid *bfid, uint64_t flags,
		       struct mrf_eq *eq)
{
	int ret;

	if (!eq)
		return refuse_kind(&domain->fid.fid, bfid);
	if (flags & ~FI_REG_MR)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_DOMAIN, 2142,
				  "fi_domain_bind: flags must be 0 or FI_REG_MR, not %#lx", flags);
	ret = flags ? mrf_mr_profiled_call(&domain->space, MRF_PROFILE_REG_MR) : 0;
	if (ret)
		return ret;
	if (mrf_eq_obj(eq)->parent.target != &domain->fabric->obj)
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

static void tell_no_reports_locked(const struct mrf_domain *domain)
{
	const struct mrf_profile *profile = domain->space.profile;

	mrf_lock_held(&domain->lock);
	mrf_warn(
		FI_LOG_DOMAIN, 2167,
		"fi_domain_bind(domain %p, FI_REG_MR): accepted, but fi_mr_reg registers at once and no "
		"event is ever written with FI_MRFAB_PROFILE=%s (%s)",
		(const void *)&domain->fid, profile->name, profile->what);
}

static int report_to_locked(struct mrf_domain *domain, struct mrf_eq *eq)
{
	int ret = mrf_mr_space_report_to(&domain->space, eq);

	mrf_lock_held(&domain->lock);
	if (ret == -FI_EOPBADSTATE)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_DOMAIN, 2162,
				  "fi_domain_bind(domain %p, FI_REG_MR): the domain has "
				  "regions already: bind the event queue before the "
				  "first one is registered",
				  (const void *)&domain->fid);
	if (ret)
		return mrf_refuse(mrf_thread_err(ret), FI_LOG_DOMAIN, 2163,
				  "fi_domain_bind: the thread that registers cannot be started: %s",
				  mrf_limit_text(ret));
	return 0;
}

int mrf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_domain *domain = mrf_container_of(fid, struct mrf_domain, fid.fid);
	struct mrf_eq *eq = mrf_eq_from_fid(bfid);
	int ret = mrf_obj_check(&domain->obj, "fi_domain_bind");

	if (!ret)
		ret = check_queue(domain, bfid, flags, eq);
	if (ret)
		return ret;
	mrf_lock_take(&domain->lock);
	if (domain->eq.target)
		ret = refuse_again_locked(domain, bfid);
	else if (flags && mrf_mr_profiled_habit(&domain->space, MRF_HABIT_NO_REPORTS))
		tell_no_reports_locked(domain);
	else if (flags)
		ret = report_to_locked(domain, eq);
	else
		mrf_info(FI_LOG_DOMAIN, "fi_domain_bind(event queue) without FI_REG_MR: accepted; "
					"no event is ever written to it");
	if (!ret)
		mrf_obj_hold(&domain->eq, mrf_eq_obj(eq), fid, domain->obj.describe);
	mrf_lock_release(&domain->lock);
	return ret;
}

/* --- fi_open_ops ----------------------------------------------------------------------- */

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
				  "fi_open_ops(\"%s\"): flags must be 0, not %#lx", name, flags);
	if (!ops)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2182,
				  "fi_open_ops(\"%s\"): ops is NULL", name);
	*ops = &cache_ops;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/bind.h"
#include "mr/mr_calls.h"
#include "mr/mr_ops.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/space.h"

/* --- of a region ------------------------------------------------------------------ */

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct mrf_mr *mr = mrf_mr_from_fid(fid);
	int ret = mrf_mr_check(mr, "fi_control");

	if (ret)
		return ret;
	switch (command) {
	case FI_GET_RAW_MR:
		ret = mrf_mr_profiled_call(mr->space, MRF_PROFILE_RAW_ATTR);
		return ret ? ret : mrf_mr_raw_attr(mr, arg);
	case FI_REFRESH:
		ret = mrf_mr_profiled_call(mr->space, MRF_PROFILE_REFRESH);
		return ret ? ret : mrf_mr_refresh(mr, arg);
	case FI_ENABLE:
		ret = mrf_mr_profiled_call(mr->space, MRF_PROFILE_ENABLE);
		return ret ? ret : mrf_mr_enable(mr);
	default:
		return mrf_no_control(fid, command, arg);
	}
}

struct fi_ops mrf_mr_region_ops = {
	.size = sizeof(struct fi_ops),
	.close = mrf_mr_close,
	.bind = mrf_mr_bind,
	.control = mr_control,
	.ops_open = mrf_no_ops_open,
};

/* --- of a domain ------------------------------------------------------------------ */

/* The space whose table of operations the application called. */
static struct mrf_mr_space *space_of(struct fid *fid)
{
	struct fid_domain *domain = mrf_container_of(fid, struct fid_domain, fid);

	return mrf_container_of(domain->mr, struct mrf_mr_space, ops);
}

/* caller: where the application goes on, which the ledger keeps. */
static int register_for(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			struct fid_mr **mr, const void *caller)
{
	int ret;

	if (!fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3001, "domain must not be NULL");
	ret = mrf_mr_register(space_of(fid), attr, flags, mr);
	if (mrf_likely(!ret))
		mrf_ledger_set_caller(mrf_mr_from_fid(&(*mr)->fid)->entry, caller);
	return ret;
}

/* As register_for, for the calls that not every provider has. */
static int register_any(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			struct fid_mr **mr, const void *caller)
{
	int ret = fid ? mrf_mr_profiled_call(space_of(fid), MRF_PROFILE_REGV) : 0;

	return ret ? ret : register_for(fid, attr, flags, mr, caller);
}

static int reg_attr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **mr)
{
	return register_any(fid, attr, flags, mr, __builtin_return_address(0));
}

static int reg_v(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		 uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		 void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};

	return register_any(fid, &attr, flags, mr, __builtin_return_address(0));
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
	       uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};

	return register_for(fid, &attr, flags, mr, __builtin_return_address(0));
}

const struct fi_ops_mr mrf_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = reg_v,
	.regattr = reg_attr,
};

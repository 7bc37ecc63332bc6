/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/mr_int.h"

int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	if (!bfid)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_MR, 3040,
			"fi_mr_bind: bfid=NULL: must be a counter or an endpoint");
	switch (bfid->fclass) {
	case FI_CLASS_CNTR:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3041,
			"fi_mr_bind(region %p, counter %p, flags %#llx): remote "
			"accesses to regions are not counted",
			(void *)fid, (void *)bfid, (unsigned long long)flags);
	case FI_CLASS_EP:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3042,
			"fi_mr_bind(region %p, endpoint %p, flags %#llx): regions "
			"belong to the domain, FI_MR_ENDPOINT is not in force",
			(void *)fid, (void *)bfid, (unsigned long long)flags);
	default:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3043,
			"fi_mr_bind(region %p, %s %p): nothing can be bound to a "
			"region",
			(void *)fid, mrf_obj_class_name(bfid->fclass), (void *)bfid);
	}
}

int mrf_mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_GET_RAW_MR:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3044,
			"fi_mr_raw_attr(region %p): raw keys are not offered, use "
			"fi_mr_key",
			(void *)fid);
	case FI_REFRESH:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3045,
			"fi_mr_refresh(region %p): not offered, FI_MR_MMU_NOTIFY is "
			"not in force",
			(void *)fid);
	case FI_ENABLE:
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3046,
			"fi_mr_enable(region %p): regions are enabled from the start, "
			"neither FI_MR_ENDPOINT nor FI_MR_RMA_EVENT is in force",
			(void *)fid);
	default:
		return mrf_no_control(fid, command, arg);
	}
}

static int reg_attr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **mr)
{
	if (!fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3001,
				  "domain=NULL: must be given");
	return mrf_mr_register(mrf_domain_mr_space(fid), attr, flags, mr);
}

static int reg_v(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		 uint64_t offset, uint64_t requested_key, uint64_t flags,
		 struct fid_mr **mr, void *context)
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

	return reg_attr(fid, &attr, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	       uint64_t offset, uint64_t requested_key, uint64_t flags,
	       struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return reg_v(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr mrf_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = reg_v,
	.regattr = reg_attr,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/faulty.h"

#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/fault.h"
#include "base/log.h"
#include "mr/mr_calls.h"
#include "mr/mr_ops.h"
#include "mr/region.h"

static int fault(struct mrf_mr_space *space, enum mrf_fault_call call, const char *name)
{
	return mrf_fault_refuse(space->faults, call, FI_LOG_MR, name);
}

/* --- registering ---------------------------------------------------------------------- */

static int check_key_bits(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	unsigned bits = space->faults->key_bits;

	if (space->mode & FI_MR_PROV_KEY || !(attr->access & MRF_MR_REMOTE) || bits == 64 ||
	    !(attr->requested_key >> bits))
		return 0;
	return mrf_refuse(FI_EKEYREJECTED, FI_LOG_MR, 3091,
			  "requested_key=%#lx has more than %u bits (FI_MRFAB_FAULT=key_bits=%u)",
			  attr->requested_key, bits, bits);
}

static uint64_t count_open(struct mrf_mr_space *space)
{
	uint64_t n = 0;

	mrf_lock_take(&space->lock);
	mrf_list_each (node, &space->regions.holds)
		n++;
	mrf_lock_release(&space->lock);
	return n;
}

static int check_count(struct mrf_mr_space *space)
{
	uint64_t most = space->faults->mr_cnt;

	if (most == UINT64_MAX || count_open(space) < most)
		return 0;
	return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3092,
			  "fi_mr_reg: %lu region%s open (FI_MRFAB_FAULT=mr_cnt=%lu)",
			  (unsigned long)most, most == 1 ? " is" : "s are", (unsigned long)most);
}

static int register_counted(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			    uint64_t flags, struct fid_mr **mr, const void *caller)
{
	int ret = fault(space, MRF_FAULT_REG, "fi_mr_reg");

	if (!ret && attr)
		ret = check_key_bits(space, attr);
	if (!ret)
		ret = check_count(space);
	if (ret)
		return ret;
	ret = mrf_mr_register(space, attr, flags, mr);
	if (!ret)
		mrf_ledger_set_caller(mrf_mr_from_fid(&(*mr)->fid)->entry, caller);
	return ret;
}

static struct mrf_mr_space *space_below(struct fid *fid)
{
	struct fid_domain *domain = mrf_container_of(fid, struct fid_domain, fid);

	return mrf_container_of(domain->mr, struct mrf_mr_space, ops);
}

static int faulty_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			  struct fid_mr **mr)
{
	return register_counted(space_below(fid), attr, flags, mr, __builtin_return_address(0));
}

static int faulty_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	struct fi_mr_attr attr = { .mr_iov = iov,
				   .iov_count = count,
				   .access = access,
				   .offset = offset,
				   .requested_key = requested_key,
				   .context = context,
				   .iface = FI_HMEM_SYSTEM };

	return register_counted(space_below(fid), &attr, flags, mr, __builtin_return_address(0));
}

static int faulty_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = access,
				   .offset = offset,
				   .requested_key = requested_key,
				   .context = context,
				   .iface = FI_HMEM_SYSTEM };

	return register_counted(space_below(fid), &attr, flags, mr, __builtin_return_address(0));
}

const struct fi_ops_mr mrf_faulty_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = faulty_reg,
	.regv = faulty_regv,
	.regattr = faulty_regattr,
};

/* --- regions -------------------------------------------------------------------------- */

static int faulty_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	int ret = fault(mrf_mr_from_fid(fid)->space, MRF_FAULT_BIND, "fi_mr_bind");

	return ret ? ret : mrf_mr_region_ops.bind(fid, bfid, flags);
}

static int faulty_control(struct fid *fid, int command, void *arg)
{
	struct mrf_mr_space *space = mrf_mr_from_fid(fid)->space;
	int ret = 0;

	switch (command) {
	case FI_GET_RAW_MR:
		ret = fault(space, MRF_FAULT_RAW, "fi_mr_raw_attr");
		break;
	case FI_REFRESH:
		ret = fault(space, MRF_FAULT_REFRESH, "fi_mr_refresh");
		break;
	case FI_ENABLE:
		ret = fault(space, MRF_FAULT_ENABLE, "fi_mr_enable");
		break;
	default:
		break;
	}
	return ret ? ret : mrf_mr_region_ops.control(fid, command, arg);
}

struct fi_ops mrf_faulty_region_ops = {
	.size = sizeof(struct fi_ops),
	.close = mrf_mr_close,
	.bind = faulty_bind,
	.control = faulty_control,
	.ops_open = mrf_no_ops_open,
};

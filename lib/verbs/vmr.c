/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "verbs/verbs_int.h"

#define NEED_LOCAL_WRITE \
	(MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC)

static int kernel_access(unsigned rights)
{
	int access = 0;

	if (rights & NEED_LOCAL_WRITE)
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (rights & MRF_RIGHT_REMOTE_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (rights & MRF_RIGHT_REMOTE_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (rights & MRF_RIGHT_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return access;
}

int mrf_vmr_reg(struct mrf_vpd *vpd, const void *addr, size_t len, uint64_t iova,
		unsigned rights, struct mrf_vmr *vmr)
{
	struct ibv_mr *mr;

	/*
	 * The parentheses get the function: the macro of that name would, for rights
	 * that are no compile-time constant, add a pass for optional access bits that
	 * we never use.
	 */
	mr = (ibv_reg_mr_iova)(vpd->pd, (void *)addr, len, iova, kernel_access(rights));
	if (mrf_unlikely(!mr))
		return mrf_verbs_errno();
	vmr->handle = mr;
	vmr->lkey = mr->lkey;
	vmr->rkey = mr->rkey;
	return 0;
}

int mrf_vmr_dereg(struct mrf_vmr *vmr)
{
	int ret;

	if (!vmr->handle)
		return 0;
	ret = mrf_verbs_ret(ibv_dereg_mr(vmr->handle));
	if (mrf_unlikely(ret))
		return ret;
	vmr->handle = NULL;
	return 0;
}

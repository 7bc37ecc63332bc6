/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "verbs/verbs_int.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RW IBV_ACCESS_REMOTE_WRITE
#define RA IBV_ACCESS_REMOTE_ATOMIC

/* By enum mrf_right bits. The kernel insists on LW with RW and RA. */
static const int kernel_access[16] = {
	0,
	LW,
	RR,
	RR | LW,
	RW | LW,
	RW | LW,
	RW | RR | LW,
	RW | RR | LW,
	RA | LW,
	RA | LW,
	RA | RR | LW,
	RA | RR | LW,
	RA | RW | LW,
	RA | RW | LW,
	RA | RW | RR | LW,
	RA | RW | RR | LW,
};

_Static_assert(MRF_RIGHT_LOCAL_WRITE == 1 && MRF_RIGHT_REMOTE_READ == 2 &&
		       MRF_RIGHT_REMOTE_WRITE == 4 && MRF_RIGHT_REMOTE_ATOMIC == 8,
	       "the order of the table");

int mrf_vmr_reg(struct mrf_vpd *vpd, const void *addr, size_t len, uint64_t iova,
		unsigned rights, struct mrf_vmr *vmr)
{
	struct ibv_mr *mr;

	/*
	 * The parentheses get the function: the macro of that name would, for rights
	 * that are no compile-time constant, add a pass for optional access bits that
	 * we never use.
	 */
	mr = (ibv_reg_mr_iova)(vpd->pd, (void *)addr, len, iova,
			       kernel_access[rights & 15]);
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

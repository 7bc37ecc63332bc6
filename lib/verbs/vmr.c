/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's memory regions. There are no memory windows: rxe does not enforce their
 * bounds, and can be made to crash by them.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "verbs/verbs_int.h"
#include "verbs/vmr.h"

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

int mrf_vmr_reg(struct mrf_vpd *vpd, const void *addr, size_t len, uint64_t iova, unsigned rights,
		struct mrf_vmr *vmr)
{
	struct ibv_mr *mr;

	mrf_slow_call();
	/*
	 * The parentheses get the function: the macro of that name would, for rights
	 * that are no compile-time constant, add a pass for optional access bits that
	 * we never use.
	 */
	mr = (ibv_reg_mr_iova)(vpd->pd, (void *)addr, len, iova, kernel_access[rights & 15]);
	if (mrf_unlikely(!mr))
		return mrf_verbs_errno();
	vmr->handle = mr;
	vmr->lkey = mr->lkey;
	vmr->rkey = mr->rkey;
	return 0;
}

static int dereg(struct mrf_vmr *vmr)
{
	int ret = mrf_verbs_ret(ibv_dereg_mr(vmr->handle));

	if (mrf_unlikely(ret))
		return ret;
	vmr->handle = NULL;
	return 0;
}

int mrf_vmr_dereg(struct mrf_vmr *vmr)
{
	mrf_slow_call();
	return vmr->handle ? dereg(vmr) : 0;
}

/* The same command that ibv_dereg_mr gives the kernel before it frees its structure. */
static int kernel_destroy(const struct ibv_mr *mr)
{
	enum { LEN = sizeof(struct ib_uverbs_ioctl_hdr) + sizeof(struct ib_uverbs_attr) };
	union {
		struct ib_uverbs_ioctl_hdr head;
		uint64_t room[(LEN + 7) / 8];
	} cmd = { .room = { 0 } };

	cmd.head.length = LEN;
	cmd.head.object_id = UVERBS_OBJECT_MR;
	cmd.head.method_id = UVERBS_METHOD_MR_DESTROY;
	cmd.head.num_attrs = 1;
	cmd.head.driver_id = RDMA_DRIVER_RXE;
	cmd.head.attrs[0].attr_id = UVERBS_ATTR_DESTROY_MR_HANDLE;
	cmd.head.attrs[0].flags = UVERBS_ATTR_F_MANDATORY;
	cmd.head.attrs[0].data = mr->handle;
	return ioctl(mr->context->cmd_fd, RDMA_VERBS_IOCTL, &cmd);
}

/* If the kernel does not take the command, only the usual way is left, with its risk. */
int mrf_vmr_revoke(struct mrf_vmr *vmr)
{
	return kernel_destroy(vmr->handle) ? dereg(vmr) : 0;
}

/*
 * libibverbs has no call for a structure whose kernel half is gone. rxe's provider, the
 * only driver that the command above is for, allocates it with calloc, struct ibv_mr first.
 */
void mrf_vmr_free(struct mrf_vmr *vmr)
{
	free(vmr->handle);
	vmr->handle = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "verbs/verbs_int.h"

/* What ibv_dereg_mr asks of the kernel before it frees its structure. */
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

/* A kernel that does not take it leaves only the usual way, with its risk. */
int mrf_vmr_revoke(struct mrf_vmr *vmr)
{
	return kernel_destroy(vmr->handle) ? mrf_vmr_dereg(vmr) : 0;
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

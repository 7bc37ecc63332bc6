/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "verbs/verbs_int.h"
#include "verbs/vqp.h"
#include "verbs/vsrq.h"

int mrf_vsrq_open(struct mrf_vpd *pd, uint32_t depth, struct mrf_vsrq **out)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = 1 } };
	struct mrf_vsrq *srq = calloc(1, sizeof(*srq));

	mrf_slow_call();
	if (!srq)
		return -FI_ENOMEM;
	srq->srq = ibv_create_srq(pd->pd, &init);
	if (!srq->srq) {
		int ret = mrf_verbs_errno();

		free(srq);
		return ret;
	}
	*out = srq;
	return 0;
}

void mrf_vsrq_close(struct mrf_vsrq *srq)
{
	int ret = mrf_verbs_ret(ibv_destroy_srq(srq->srq));

	mrf_slow_call();
	if (ret)
		mrf_warn(FI_LOG_EP_CTRL, 3496,
			 "the kernel did not release a queue of shared receives: error %d", -ret);
	free(srq);
}

int mrf_vsrq_post(struct mrf_vsrq *srq, uint64_t wr_id, struct mrf_sge *sge)
{
	struct ibv_recv_wr *bad, post = {
		.wr_id = wr_id,
		.sg_list = (struct ibv_sge *)sge,
		.num_sge = 1,
	};
	int err = ibv_post_srq_recv(srq->srq, &post, &bad);

	/* A full queue is no shortage of memory. */
	if (mrf_unlikely(err))
		return err == ENOMEM ? -FI_EAGAIN : -err;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/lock.h"
#include "base/random.h"
#include "verbs/verbs_int.h"
#include "verbs/vpair.h"
#include "verbs/vqp.h"

#define PSN_MASK 0xffffffu

struct mrf_vpair {
	struct ibv_qp *qp; /* unknown to rdma_cm */
	uint32_t psn;
};

static int make_qp(struct mrf_vpair *pair, const struct mrf_vpair_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = attr->send_cq->cq,
		.recv_cq = attr->recv_cq->cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = attr->send_depth,
			 .max_recv_wr = attr->recv_depth,
			 .max_send_sge = attr->send_sge,
			 .max_recv_sge = attr->recv_sge,
			 .max_inline_data = attr->max_inline },
	};

	pair->qp = ibv_create_qp(attr->pd->pd, &init);
	return pair->qp ? 0 : mrf_verbs_errno();
}

/*
 * Where the route goes and how long to wait is as for the connection. The other end (NULL: not
 * known yet) and the number of the first packet are not those of its queue pair.
 */
static int move_to(struct mrf_vpair *pair, struct mrf_vconn *conn, enum ibv_qp_state state,
		   const struct mrf_vpair_name *other)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, ret = mrf_qp_attr(conn, &attr, &mask);

	if (ret)
		return ret;
	attr.qp_access_flags = 0;
	attr.sq_psn = pair->psn;
	if (other) {
		attr.dest_qp_num = other->qpn;
		attr.rq_psn = other->psn;
	}
	return mrf_verbs_ret(ibv_modify_qp(pair->qp, &attr, mask));
}

/*
 * A random number, so that late packets of an earlier pair, whose number the kernel has given to
 * this one, are not taken for its own. -FI_EIO: there are no random bytes.
 */
static int choose_psn(struct mrf_vpair *pair)
{
	if (!mrf_random(&pair->psn, sizeof(pair->psn)))
		return -FI_EIO;
	pair->psn &= PSN_MASK;
	return 0;
}

int mrf_vpair_open(struct mrf_vconn *conn, const struct mrf_vpair_attr *attr,
		   struct mrf_vpair **out)
{
	struct mrf_vpair *pair = calloc(1, sizeof(*pair));
	int ret;

	mrf_slow_call();
	if (!pair)
		return -FI_ENOMEM;
	ret = choose_psn(pair);
	if (!ret)
		ret = make_qp(pair, attr);
	if (!ret)
		ret = move_to(pair, conn, IBV_QPS_INIT, NULL);
	if (ret) {
		mrf_vpair_close(pair);
		return ret;
	}
	*out = pair;
	return 0;
}

struct mrf_vpair_name mrf_vpair_name(const struct mrf_vpair *pair)
{
	return (struct mrf_vpair_name){ .qpn = pair->qp->qp_num, .psn = pair->psn };
}

int mrf_vpair_connect(struct mrf_vpair *pair, struct mrf_vconn *conn,
		      const struct mrf_vpair_name *other)
{
	int ret = move_to(pair, conn, IBV_QPS_RTR, other);

	mrf_slow_call();
	return ret ? ret : move_to(pair, conn, IBV_QPS_RTS, other);
}

void mrf_vpair_close(struct mrf_vpair *pair)
{
	if (pair->qp)
		mrf_qp_destroy(pair->qp);
	free(pair);
}

int mrf_vpair_send(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline)
{
	const struct mrf_vwr wr = {
		.wr_id = wr_id, .op = MRF_VWR_SEND, .is_inline = is_inline, .nsge = nsge, .sge = sge
	};

	return mrf_qp_post(pair->qp, &wr);
}

int mrf_vpair_recv(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge)
{
	return mrf_qp_post_recv(pair->qp, wr_id, sge, nsge);
}

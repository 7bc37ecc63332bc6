/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, the RC queue pair of an rdma_cm id. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/gate.h"
#include "base/lock.h"
#include "base/log.h"
#include "verbs/vqp.h"
#include "verbs/verbs_int.h"

_Static_assert(sizeof(struct mrf_sge) == sizeof(struct ibv_sge), "cast below");
_Static_assert(offsetof(struct mrf_sge, lkey) == offsetof(struct ibv_sge, lkey), "likewise");

#define MIN_RNR_TIMER 6 /* 0.12 ms; rdma_cm's default 0 means 655 ms */

/*
 * The arguments are always in order, so EINVAL means that the connection is gone already.
 */
static int cm_errno(void)
{
	int ret = mrf_verbs_errno();

	return ret == -FI_EINVAL ? -FI_ECONNRESET : ret;
}

int mrf_qp_attr(struct mrf_vconn *conn, struct ibv_qp_attr *attr, int *mask)
{
	if (rdma_init_qp_attr(conn->id, attr, mask))
		return cm_errno();
	if (*mask & IBV_QP_MIN_RNR_TIMER)
		attr->min_rnr_timer = MIN_RNR_TIMER;
	return 0;
}

/*
 * Sets what the connection manager says for a state, but for rights: it would give the peer all
 * of them.
 */
static int to_state(struct mrf_vconn *conn, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, ret = mrf_qp_attr(conn, &attr, &mask);

	if (ret)
		return ret;
	if (mask & IBV_QP_ACCESS_FLAGS && (!conn->incoming || conn->sends_only))
		attr.qp_access_flags = 0;
	return mrf_verbs_ret(ibv_modify_qp(conn->qp, &attr, mask));
}

void mrf_qp_destroy(struct ibv_qp *qp)
{
	int ret = mrf_verbs_ret(ibv_destroy_qp(qp));

	mrf_slow_call();
	if (ret)
		mrf_warn(FI_LOG_EP_CTRL, 3491, "the kernel did not release a queue pair: error %d",
			 -ret);
}

int mrf_vconn_create_qp(struct mrf_vconn *conn, const struct mrf_vqp_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.qp_context = conn,
		.qp_type = IBV_QPT_RC,
		.send_cq = attr->send_cq->cq,
		.recv_cq = attr->recv_cq->cq,
		.srq = attr->srq ? attr->srq->srq : NULL,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = attr->send_depth,
			 .max_recv_wr = attr->recv_depth,
			 .max_send_sge = attr->send_sge,
			 .max_recv_sge = 1,
			 .max_inline_data = attr->max_inline },
	};
	int ret;

	mrf_slow_call();
	conn->qp = ibv_create_qp(attr->pd->pd, &init);
	if (!conn->qp)
		return mrf_verbs_errno();
	conn->sends_only = attr->sends_only;
	ret = to_state(conn, IBV_QPS_INIT);
	if (ret) {
		mrf_vconn_destroy_qp(conn);
		return ret;
	}
	/*
	 * librdmacm moves the queue pair of an id, if it knows of it, through its states,
	 * whoever made it. On the initiator's side it would open the queue pair to the
	 * target before anything of the response was checked; on the target's it would give
	 * the initiator all rights.
	 */
	if (conn->incoming && !conn->sends_only)
		conn->id->qp = conn->qp;
	return 0;
}

void mrf_vconn_destroy_qp(struct mrf_vconn *conn)
{
	if (conn->qp)
		mrf_qp_destroy(conn->qp);
	conn->qp = NULL;
	conn->id->qp = NULL;
}

int mrf_vconn_establish(struct mrf_vconn *conn)
{
	int ret;

	mrf_slow_call();
	/*
	 * Values that were set before the answer came may differ from those of the
	 * answer.
	 */
	ret = to_state(conn, IBV_QPS_INIT);
	if (!ret)
		ret = mrf_qp_get_ready(conn);
	if (!ret && MRF_GATED(rdma_establish(conn->id)))
		ret = cm_errno();
	return ret;
}

int mrf_qp_get_ready(struct mrf_vconn *conn)
{
	int ret = to_state(conn, IBV_QPS_RTR);

	return ret ? ret : to_state(conn, IBV_QPS_RTS);
}

static int query(const struct mrf_vconn *conn, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	mrf_slow_call();
	return mrf_verbs_ret(ibv_query_qp(conn->qp, attr,
					  IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, &init));
}

int mrf_vconn_psn(const struct mrf_vconn *conn, uint32_t *psn, uint32_t *mtu)
{
	struct ibv_qp_attr attr;
	int ret = query(conn, &attr);

	if (ret)
		return ret;
	*psn = attr.sq_psn;
	*mtu = 128u << attr.path_mtu;
	return 0;
}

/*
 * It is not reset, which would promise as much: on Linux 6.1 that runs the queue pair's part of the kernel
 * even while another processor runs it, and each frees what the other one uses.
 */
int mrf_vconn_stopped(const struct mrf_vconn *conn, uint32_t *psn)
{
	struct ibv_qp_attr attr;
	int ret = query(conn, &attr);

	if (!ret)
		*psn = attr.rq_psn;
	return ret;
}

uint32_t mrf_vconn_qpn(const struct mrf_vconn *conn)
{
	return conn->qp->qp_num;
}

int mrf_vconn_tune(struct mrf_vconn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = MIN_RNR_TIMER };

	mrf_slow_call();
	return mrf_verbs_ret(ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
}

static int to_fi(int err)
{
	/* A full queue is no shortage of memory: the caller waits for completions. */
	return err == ENOMEM ? -FI_EAGAIN : -err;
}

static const enum ibv_wr_opcode opcode[] = {
	[MRF_VWR_READ] = IBV_WR_RDMA_READ,
	[MRF_VWR_WRITE] = IBV_WR_RDMA_WRITE,
	[MRF_VWR_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[MRF_VWR_SEND] = IBV_WR_SEND,
	[MRF_VWR_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[MRF_VWR_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[MRF_VWR_CMP_SWP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/*
 * Sets what every work request has. The rest is not initialised: clearing the members that an
 * operation does not use would cost more than setting those that it does.
 */
static inline void fill_wr(struct ibv_send_wr *post, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			   enum mrf_vwr_op op, bool is_inline)
{
	post->wr_id = wr_id;
	post->next = NULL;
	post->sg_list = (struct ibv_sge *)sge;
	post->num_sge = nsge;
	post->opcode = opcode[op];
	post->send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0u);
}

static inline int post_wr(struct ibv_qp *qp, struct ibv_send_wr *post)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(qp, post, &bad);

	return mrf_likely(!err) ? 0 : to_fi(err);
}

int mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op, bool is_inline,
		     struct mrf_sge *sge, uint64_t remote_addr, uint32_t rkey, uint32_t imm)
{
	struct ibv_send_wr post;

	fill_wr(&post, wr_id, sge, 1, op, is_inline);
	post.imm_data = htonl(imm);
	post.wr.rdma.remote_addr = remote_addr;
	post.wr.rdma.rkey = rkey;
	return post_wr(conn->qp, &post);
}

int mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline)
{
	struct ibv_send_wr post;

	fill_wr(&post, wr_id, sge, nsge, MRF_VWR_SEND, is_inline);
	return post_wr(conn->qp, &post);
}

int mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		       bool is_inline, uint32_t imm)
{
	struct ibv_send_wr post;

	fill_wr(&post, wr_id, sge, nsge, MRF_VWR_SEND_IMM, is_inline);
	post.imm_data = htonl(imm);
	return post_wr(conn->qp, &post);
}

int mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			uint64_t remote_addr, uint32_t rkey, uint64_t add)
{
	struct ibv_send_wr post;

	fill_wr(&post, wr_id, sge, 1, MRF_VWR_FETCH_ADD, false);
	post.wr.atomic.remote_addr = remote_addr;
	post.wr.atomic.rkey = rkey;
	post.wr.atomic.compare_add = add;
	return post_wr(conn->qp, &post);
}

int mrf_qp_post(struct ibv_qp *qp, const struct mrf_vwr *wr)
{
	struct ibv_send_wr post;

	fill_wr(&post, wr->wr_id, wr->sge, wr->nsge, wr->op, wr->is_inline);
	if (wr->fence)
		post.send_flags |= IBV_SEND_FENCE;
	if (wr->op == MRF_VWR_FETCH_ADD || wr->op == MRF_VWR_CMP_SWP) {
		post.wr.atomic.remote_addr = wr->remote_addr;
		post.wr.atomic.rkey = wr->rkey;
		post.wr.atomic.compare_add =
			wr->op == MRF_VWR_FETCH_ADD ? wr->operand : wr->compare;
		post.wr.atomic.swap = wr->operand;
	} else {
		post.imm_data = htonl(wr->imm);
		post.wr.rdma.remote_addr = wr->remote_addr;
		post.wr.rdma.rkey = wr->rkey;
	}
	return post_wr(qp, &post);
}

int mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr)
{
	return mrf_qp_post(conn->qp, wr);
}

int mrf_qp_post_recv(struct ibv_qp *qp, uint64_t wr_id, struct mrf_sge *sge, int nsge)
{
	struct ibv_recv_wr *bad, post = {
		.wr_id = wr_id,
		.sg_list = (struct ibv_sge *)sge,
		.num_sge = nsge,
	};
	int err = ibv_post_recv(qp, &post, &bad);

	return err ? to_fi(err) : 0;
}

int mrf_vconn_post_recv(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge)
{
	return mrf_qp_post_recv(conn->qp, wr_id, sge, 1);
}

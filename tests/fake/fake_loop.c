/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "fake_loop.h"

#undef ibv_query_port

#define QPS 2

struct qp {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
	int mask;
	struct ibv_wc wc; /* of the one work request that may be under way */
	bool busy;
	int left;
};

struct fake_loop fake_loop;

static struct {
	enum fake_loop_call call;
	unsigned nth;
	int err;
	struct qp *qp[QPS];
	uint32_t numbers;
	struct ibv_cq *cq; /* the last one that was made */
	bool armed;
} f;

/* errno of this call, or 0. */
static int ordered(enum fake_loop_call call)
{
	fake_loop.calls[call]++;
	if (f.call == call && f.nth && !--f.nth)
		return f.err;
	return 0;
}

void fake_loop_fail(enum fake_loop_call call, unsigned nth, int err)
{
	f.call = call;
	f.nth = nth;
	f.err = err;
}

bool fake_loop_failed(void)
{
	return !f.nth;
}

/* --- the device ------------------------------------------------------------------------ */

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *out = (struct ibv_port_attr *)attr;
	int err = ordered(QP_QUERY_PORT);

	(void)ctx;
	if (err)
		return err;
	if (!port || port > FAKE_LOOP_PORTS)
		return EINVAL;
	out->gid_tbl_len = FAKE_LOOP_GIDS;
	out->active_mtu = fake_loop.mtu[port - 1];
	return 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	int err = ordered(QP_QUERY_GID);

	(void)ctx;
	if (err || index >= FAKE_LOOP_GIDS) {
		errno = err ? err : EINVAL;
		return -1;
	}
	*gid = fake_loop.gid[port - 1][index];
	return 0;
}

/* --- completion queues ------------------------------------------------------------------ */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	errno = ordered(QP_CREATE_CHANNEL);
	if (errno)
		return NULL;
	channel = calloc(1, sizeof(*channel));
	channel->context = ctx;
	channel->fd = eventfd(0, EFD_CLOEXEC);
	fake_loop.live++;
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	fake_loop.live--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq;

	(void)vector;
	errno = ordered(QP_CREATE_CQ);
	if (errno)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	cq->context = ctx;
	cq->channel = channel;
	cq->cq_context = context;
	cq->cqe = cqe;
	f.cq = cq;
	fake_loop.live++;
	return cq;
}

/* The loop's is long enough from the start. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	(void)cq;
	(void)cqe;
	abort();
}

/* As the real one, it would wait for ever for events that were not given back. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (fake_loop.events != fake_loop.acked)
		abort();
	free(cq);
	fake_loop.live--;
	return 0;
}

static int req_notify(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	(void)solicited;
	f.armed = true;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	uint64_t n;

	if (read(channel->fd, &n, sizeof(n)) != sizeof(n))
		return -1;
	*cq = f.cq;
	*context = f.cq->cq_context;
	fake_loop.events++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	fake_loop.acked += n;
}

/* A work request that is under way gets older. */
static void tick(struct ibv_cq *cq)
{
	struct qp *qp = f.qp[0];
	uint64_t one = 1;

	if (!qp || !qp->busy || qp->left <= 0 || --qp->left || !f.armed)
		return;
	f.armed = false;
	if (cq->channel && write(cq->channel->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct qp *qp = f.qp[0];

	if (ordered(QP_POLL))
		return -1;
	if (n && fake_loop.has_extra) {
		fake_loop.has_extra = false;
		*wc = fake_loop.extra;
		return 1;
	}
	if (!n || !qp || !qp->busy)
		return 0;
	if (qp->left) {
		if (!fake_loop.by_event)
			tick(cq);
		return 0;
	}
	*wc = qp->wc;
	qp->busy = false;
	return 1;
}

/* Of the process: of a channel, here. Nothing but time passes while it waits. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	(void)timeout;
	fake_loop.sleeps++;
	fake_loop.bad_sleeps += !f.armed || __real_poll(fds, n, 0);
	if (f.qp[0])
		tick(f.qp[0]->qp.send_cq);
	return __real_poll(fds, n, 0);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status ? "failed" : "success";
}

/* --- queue pairs -------------------------------------------------------------------------- */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct qp *qp;
	int i;

	errno = ordered(QP_CREATE);
	if (errno)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	qp->qp.context = &fake_loop.ctx;
	qp->qp.pd = pd;
	qp->qp.send_cq = init->send_cq;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.qp_num = ++f.numbers;
	qp->qp.qp_type = init->qp_type;
	qp->qp.state = IBV_QPS_RESET;
	for (i = 0; i < QPS && f.qp[i]; i++)
		;
	if (i == QPS)
		abort();
	f.qp[i] = qp;
	fake_loop.live++;
	return &qp->qp;
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct qp *qp = (struct qp *)ibqp;

	f.qp[f.qp[1] == qp] = NULL;
	free(qp);
	fake_loop.live--;
	return 0;
}

/* What the kernel wants of an RC queue pair, beside the state. */
static int needed(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_RTR:
		return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	default:
		return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
}

static void keep(const struct qp *qp)
{
	if (qp == f.qp[0]) {
		fake_loop.here = qp->attr;
		fake_loop.mask_here = qp->mask;
	} else {
		fake_loop.there = qp->attr;
		fake_loop.mask_there = qp->mask;
	}
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = ordered(QP_MODIFY);

	if (err)
		return err;
	if (!(mask & IBV_QP_STATE) || attr->qp_state != ibqp->state + 1 ||
	    (mask & ~IBV_QP_STATE) != needed(attr->qp_state))
		return EINVAL;
	ibqp->state = attr->qp_state;
	qp->mask |= mask;
	if (attr->qp_state == IBV_QPS_INIT)
		qp->attr = *attr;
	if (attr->qp_state == IBV_QPS_RTR) {
		qp->attr.path_mtu = attr->path_mtu;
		qp->attr.dest_qp_num = attr->dest_qp_num;
		qp->attr.ah_attr = attr->ah_attr;
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	}
	if (attr->qp_state == IBV_QPS_RTS) {
		qp->attr.retry_cnt = attr->retry_cnt;
		qp->attr.rnr_retry = attr->rnr_retry;
		qp->attr.timeout = attr->timeout;
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	}
	qp->attr.qp_state = attr->qp_state;
	keep(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)ibqp;
	(void)attr;
	(void)mask;
	(void)init;
	return ENOSYS;
}

/* --- work requests ------------------------------------------------------------------------- */

static bool is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void copy(const struct ibv_send_wr *wr)
{
	uint8_t *there = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
	int i;

	for (i = 0; i < wr->num_sge; there += wr->sg_list[i++].length) {
		void *here = (void *)(uintptr_t)wr->sg_list[i].addr;

		if (wr->opcode == IBV_WR_RDMA_READ)
			memcpy(here, there, wr->sg_list[i].length);
		else
			memcpy(there, here, wr->sg_list[i].length);
	}
}

static void change(const struct ibv_send_wr *wr)
{
	uint64_t *there = (uint64_t *)(uintptr_t)wr->wr.atomic.remote_addr, old = *there;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*there += wr->wr.atomic.compare_add;
	else if (old == wr->wr.atomic.compare_add)
		*there = wr->wr.atomic.swap;
	memcpy((void *)(uintptr_t)wr->sg_list[0].addr, &old, sizeof(old));
}

static enum ibv_wc_status carry_out(const struct ibv_send_wr *wr)
{
	uint32_t rkey = is_atomic(wr) ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	int i;

	if (fake_loop.status)
		return fake_loop.status;
	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].lkey != FAKE_LOOP_LKEY)
			return IBV_WC_LOC_PROT_ERR;
	}
	if (rkey != FAKE_LOOP_RKEY)
		return IBV_WC_REM_ACCESS_ERR;
	if (is_atomic(wr))
		change(wr);
	else
		copy(wr);
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = ordered(QP_POST);

	*bad = wr;
	fake_loop.last = *wr;
	memcpy(fake_loop.last_sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	if (err)
		return err;
	if (ibqp->state != IBV_QPS_RTS || qp->busy)
		return EINVAL;
	qp->busy = true;
	qp->left = fake_loop.late;
	qp->wc = (struct ibv_wc){ .wr_id = wr->wr_id, .status = carry_out(wr) };
	return 0;
}

void fake_loop_reset(void)
{
	if (fake_loop.live)
		abort();
	memset(&fake_loop, 0, sizeof(fake_loop));
	memset(&f, 0, sizeof(f));
	fake_loop.ctx.ops.poll_cq = poll_cq;
	fake_loop.ctx.ops.req_notify_cq = req_notify;
	fake_loop.ctx.ops.post_send = post_send;
}

/* --- never called: of the other half of vqp.c ----------------------------------------------- */

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	(void)attr;
	(void)mask;
	abort();
}

int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	abort();
}

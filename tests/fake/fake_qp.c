/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues and connections for fake_verbs.c: nothing is on the other side. What is posted is
 * done, says the completion queue; each look for events finds a connection request.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "fake_verbs.h"

#undef ibv_query_port

/* Of the inline calls, which go through it. */
static struct ibv_context ops;
static struct rdma_cm_id *listener;

/* --- completion queues ------------------------------------------------------------ */

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	if (!fake_verbs_goes_on(FAKE_POLL_CQ))
		return -1;
	if (n < 1)
		return 0;
	wc[0] = (struct ibv_wc){ .status = IBV_WC_SUCCESS,
				 .opcode = IBV_WC_RDMA_WRITE,
				 .qp_num = 78 };
	return 1;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	(void)solicited;
	return fake_verbs_goes_on(FAKE_REQ_NOTIFY_CQ) ? 0 : errno;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return fake_verbs_goes_on(FAKE_POST_SEND) ? 0 : errno;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	*bad = wr;
	return fake_verbs_goes_on(FAKE_POST_RECV) ? 0 : errno;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return fake_verbs_goes_on(FAKE_POST_SRQ_RECV) ? 0 : errno;
}

static struct ibv_context *with_ops(void)
{
	ops.ops.poll_cq = poll_cq;
	ops.ops.req_notify_cq = req_notify_cq;
	ops.ops.post_send = post_send;
	ops.ops.post_recv = post_recv;
	ops.ops.post_srq_recv = post_srq_recv;
	return &ops;
}

static void *made(enum fake_call call, size_t size)
{
	if (!fake_verbs_goes_on(call))
		return NULL;
	fake_verbs.live_queues++;
	return fake_verbs_zalloc(size);
}

static int unmake(enum fake_call call, void *object)
{
	if (fake_verbs_goes_on(call)) {
		fake_verbs.live_queues--;
		free(object);
		return 0;
	}
	fake_verbs_keep(object);
	return errno;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = made(FAKE_CREATE_COMP_CHANNEL, sizeof(*channel));

	if (channel) {
		channel->context = ctx;
		channel->fd = eventfd(0, EFD_CLOEXEC);
	}
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	fake_verbs.live_queues--;
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int n, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = made(FAKE_CREATE_CQ, sizeof(*cq));

	(void)ctx;
	(void)vector;
	if (cq) {
		cq->context = with_ops();
		cq->channel = channel;
		cq->cq_context = context;
		cq->cqe = n;
	}
	return cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int n)
{
	if (!fake_verbs_goes_on(FAKE_RESIZE_CQ))
		return errno;
	cq->cqe = n;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return unmake(FAKE_DESTROY_CQ, cq);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	(void)channel;
	*cq = NULL;
	*context = NULL;
	errno = EAGAIN;
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "";
}

/* --- queue pairs ------------------------------------------------------------------ */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = made(FAKE_CREATE_SRQ, sizeof(*srq));

	if (srq) {
		srq->srq_context = attr->srq_context;
		srq->context = with_ops();
		srq->pd = pd;
	}
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return unmake(FAKE_DESTROY_SRQ, srq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = made(FAKE_CREATE_QP, sizeof(*qp));

	if (qp) {
		qp->qp_context = attr->qp_context;
		qp->context = with_ops();
		qp->pd = pd;
		qp->srq = attr->srq;
		qp->qp_num = 77;
	}
	return qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	if (mask & IBV_QP_ACCESS_FLAGS)
		fake_verbs.access = attr->qp_access_flags;
	if (mask & IBV_QP_DEST_QPN)
		fake_verbs.other = (struct fake_end){ attr->dest_qp_num, attr->rq_psn };
	if (mask & IBV_QP_SQ_PSN)
		fake_verbs.sq_psn = attr->sq_psn;
	return fake_verbs_goes_on(FAKE_MODIFY_QP) ? 0 : errno;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)qp;
	(void)mask;
	(void)init;
	if (!fake_verbs_goes_on(FAKE_QUERY_QP))
		return errno;
	*attr = (struct ibv_qp_attr){ .path_mtu = IBV_MTU_1024, .rq_psn = 7, .sq_psn = 9 };
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return unmake(FAKE_DESTROY_QP, qp);
}

/* One port, with 10.99.1.1 as its first address. */
int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *out = (struct ibv_port_attr *)attr;

	(void)ctx;
	if (port != 1)
		return EINVAL;
	if (!fake_verbs_goes_on(FAKE_QUERY_PORT))
		return errno;
	out->gid_tbl_len = 1;
	out->active_mtu = IBV_MTU_1024;
	return 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	(void)port;
	(void)index;
	if (!fake_verbs_goes_on(FAKE_QUERY_GID))
		return -1;
	*gid = (union ibv_gid){
		.raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [14] = 1, [15] = 1 }
	};
	return 0;
}

/* --- events of the device --------------------------------------------------------- */

void fake_verbs_tell(struct ibv_async_event event)
{
	fake_verbs.event = event;
	fake_verbs_context()->async_fd = eventfd(1, EFD_CLOEXEC);
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	close(ctx->async_fd);
	ctx->async_fd = -1;
	if (!fake_verbs_goes_on(FAKE_GET_ASYNC_EVENT))
		return -1;
	*event = fake_verbs.event;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	fake_verbs.acked++;
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	return type == IBV_EVENT_GID_CHANGE ? "GID table change" : "something";
}

/* --- rdma_cm ---------------------------------------------------------------------- */

static int answer(enum fake_call call)
{
	return fake_verbs_goes_on(call) ? 0 : -1;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	listener = id;
	return answer(FAKE_LISTEN);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	(void)id;
	return 1;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return answer(FAKE_SET_OPTION);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout)
{
	(void)id;
	(void)src;
	(void)dst;
	(void)timeout;
	return answer(FAKE_RESOLVE_ADDR);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout)
{
	(void)id;
	(void)timeout;
	return answer(FAKE_RESOLVE_ROUTE);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	(void)param;
	return answer(FAKE_CONNECT);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	/* It tells the number of a queue pair, its own or one that it is told. */
	if (!id->qp && (param->qp_num != 77 || !param->srq))
		abort();
	return answer(FAKE_ACCEPT);
}

int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	return answer(FAKE_ESTABLISH);
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	(void)data;
	(void)len;
	return answer(FAKE_REJECT);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	return answer(FAKE_DISCONNECT);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;
	if (attr->qp_state == IBV_QPS_RTR)
		*mask |= IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (attr->qp_state == IBV_QPS_RTS)
		*mask |= IBV_QP_SQ_PSN;
	return answer(FAKE_INIT_QP_ATTR);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct fake_cm_event told = fake_verbs.cm_event;
	struct rdma_cm_event *event;

	if (answer(FAKE_GET_CM_EVENT))
		return -1;
	event = fake_verbs_zalloc(sizeof(*event));
	*out = event;
	if (told.type != RDMA_CM_EVENT_ADDR_RESOLVED) {
		event->event = told.type;
		event->status = told.status;
		event->id = listener;
		errno = told.err ? told.err : errno;
		return 0;
	}
	event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
	event->listen_id = listener;
	event->id = fake_verbs_zalloc(sizeof(*event->id));
	event->id->channel = channel;
	fake_verbs.live_ids++;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

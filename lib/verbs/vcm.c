/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, first half: rdma_cm ids and their events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/lock.h"
#include "base/log.h"
#include "verbs/vcm.h"
#include "verbs/vqp.h"
#include "verbs/verbs_int.h"

struct mrf_vcm {
	struct rdma_event_channel *channel;
};

#define BACKLOG 1024
/* Reads that one side may have in flight at the other; 0 would hang them for ever. */
#define RD_ATOMIC 16
/*
 * rxe takes 7 as "for ever", which is right here: the target's kernel says when to go on,
 * as long as it lives.
 */
#define RNR_FOR_EVER 7

int mrf_vcm_open(struct mrf_vcm **out)
{
	struct mrf_vcm *cm = calloc(1, sizeof(*cm));
	int flags, ret;

	if (!cm)
		return -FI_ENOMEM;
	cm->channel = MRF_GATED(rdma_create_event_channel());
	if (!cm->channel) {
		ret = mrf_verbs_errno();
		goto err_free;
	}
	cm->channel->fd = mrf_fd_high(cm->channel->fd);
	flags = fcntl(cm->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		ret = mrf_verbs_errno();
		goto err_channel;
	}
	*out = cm;
	return 0;

err_channel:
	rdma_destroy_event_channel(cm->channel);
err_free:
	free(cm);
	return ret;
}

void mrf_vcm_close(struct mrf_vcm *cm)
{
	mrf_slow_call();
	rdma_destroy_event_channel(cm->channel);
	free(cm);
}

/*
 * The descriptor's number goes on naming something, which takes nothing: librdmacm writes
 * to it when ids are destroyed. These calls fail then, and what librdmacm has of an id is
 * lost, a few hundred bytes each.
 */
void mrf_vcm_abandon(struct mrf_vcm *cm)
{
	int end[2];

	if (pipe2(end, O_CLOEXEC | O_NONBLOCK)) {
		/*
		 * If there is no other descriptor to put in its place, this one is given
		 * up.
		 */
		mrf_info(FI_LOG_EP_CTRL, "there is no file descriptor to let go of rdma_cm with");
		return;
	}
	(void)MRF_GATED(dup3(end[0], cm->channel->fd, O_CLOEXEC));
	close(end[0]);
	close(end[1]);
}

int mrf_vcm_fd(const struct mrf_vcm *cm)
{
	return cm->channel->fd;
}

static enum mrf_cm_type to_cm_type(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return MRF_CM_ADDR_RESOLVED;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return MRF_CM_ROUTE_RESOLVED;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return MRF_CM_REQUEST;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return MRF_CM_RESPONSE;
	case RDMA_CM_EVENT_ESTABLISHED:
		return MRF_CM_ESTABLISHED;
	case RDMA_CM_EVENT_REJECTED:
		return MRF_CM_REJECTED;
	case RDMA_CM_EVENT_ADDR_ERROR:
		return event->status == -ETIMEDOUT ? MRF_CM_UNRESOLVED : MRF_CM_FAILED;
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return MRF_CM_FAILED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return MRF_CM_DISCONNECTED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return MRF_CM_REMOVED;
	default:
		return MRF_CM_OTHER;
	}
}

/*
 * The error that an event of a failure stands for. librdmacm asks the kernel what it has found
 * before it hands on such an event. If the kernel refuses that, only errno says so (asked).
 */
static int to_err(const struct rdma_cm_event *event, int asked)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (asked == EACCES)
			return FI_EACCES;
		return event->status == -ETIMEDOUT ? FI_ETIMEDOUT : FI_EHOSTUNREACH;
	case RDMA_CM_EVENT_UNREACHABLE:
		return event->status == -ETIMEDOUT ? FI_ETIMEDOUT : FI_EHOSTUNREACH;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return FI_ECONNABORTED;
	default:
		return FI_EOTHER;
	}
}

/* Gives an incoming id its own mrf_vconn; without memory the request is dropped. */
static int adopt(struct rdma_cm_id *id, struct mrf_cm_event *event)
{
	struct mrf_vconn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return -FI_ENOMEM;
	conn->id = id;
	conn->incoming = true;
	id->context = conn;
	event->incoming = conn;
	return 0;
}

static void translate(const struct rdma_cm_event *from, int asked, struct mrf_cm_event *to)
{
	const struct rdma_conn_param *param = &from->param.conn;

	to->type = to_cm_type(from);
	to->conn = from->id->context;
	to->incoming = NULL;
	to->err = to_err(from, asked);
	to->status = from->status;
	to->qpn = param->qp_num;
	to->len = 0;
	if (param->private_data && param->private_data_len) {
		to->len = mrf_min(param->private_data_len, sizeof(to->data));
		memcpy(to->data, param->private_data, to->len);
	}
}

/* Inside the gate. */
static int next_event(struct mrf_vcm *cm, struct mrf_cm_event *event)
{
	struct rdma_cm_event *got;
	struct rdma_cm_id *drop = NULL;

	errno = 0;
	if (rdma_get_cm_event(cm->channel, &got))
		return mrf_verbs_errno();
	translate(got, errno, event);
	if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		event->conn = got->listen_id->context;
		if (adopt(got->id, event))
			drop = got->id;
	}
	/* Acknowledged at once, so that destroying an id never waits for its own event. */
	rdma_ack_cm_event(got);
	if (drop) {
		rdma_destroy_id(drop);
		event->type = MRF_CM_OTHER;
	}
	return 0;
}

int mrf_vcm_next(struct mrf_vcm *cm, struct mrf_cm_event *event)
{
	return MRF_GATED(next_event(cm, event));
}

int mrf_vconn_open(struct mrf_vcm *cm, void *owner, struct mrf_vconn **out)
{
	struct mrf_vconn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return -FI_ENOMEM;
	if (MRF_GATED(rdma_create_id(cm->channel, &conn->id, conn, RDMA_PS_TCP))) {
		int ret = mrf_verbs_errno();

		free(conn);
		return ret;
	}
	conn->owner = owner;
	*out = conn;
	return 0;
}

void mrf_vconn_close(struct mrf_vconn *conn)
{
	mrf_vconn_destroy_qp(conn);
	(void)MRF_GATED(rdma_destroy_id(conn->id));
	free(conn);
}

void *mrf_vconn_owner(const struct mrf_vconn *conn)
{
	return conn->owner;
}

void mrf_vconn_set_owner(struct mrf_vconn *conn, void *owner)
{
	conn->owner = owner;
}

int mrf_vconn_bind(struct mrf_vconn *conn, struct sockaddr *addr)
{
	if (MRF_GATED(rdma_bind_addr(conn->id, addr)))
		return mrf_verbs_errno();
	mrf_addr_set_port((union mrf_addr *)(void *)addr, ntohs(rdma_get_src_port(conn->id)));
	return 0;
}

int mrf_vconn_listen(struct mrf_vconn *conn)
{
	return MRF_GATED(rdma_listen(conn->id, BACKLOG)) ? mrf_verbs_errno() : 0;
}

int mrf_vconn_resolve(struct mrf_vconn *conn, const struct sockaddr *src,
		      const struct sockaddr *dst, int timeout_ms, unsigned ack_timeout)
{
	uint8_t ack = (uint8_t)ack_timeout;

	/*
	 * A value has to be set before the address is resolved, otherwise it does not
	 * reach the queue pair.
	 */
	if (rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack,
			    sizeof(ack)))
		return mrf_verbs_errno();
	if (MRF_GATED(rdma_resolve_addr(conn->id, (struct sockaddr *)(uintptr_t)src,
					(struct sockaddr *)(uintptr_t)dst, timeout_ms)))
		return mrf_verbs_errno();
	return 0;
}

int mrf_vconn_route(struct mrf_vconn *conn, int timeout_ms)
{
	return MRF_GATED(rdma_resolve_route(conn->id, timeout_ms)) ? mrf_verbs_errno() : 0;
}

int mrf_vconn_connect(struct mrf_vconn *conn, const void *data, size_t len, unsigned retry)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = RD_ATOMIC,
		.initiator_depth = RD_ATOMIC,
		.retry_count = (uint8_t)retry,
		.rnr_retry_count = RNR_FOR_EVER,
		.qp_num = conn->qp->qp_num,
	};

	return MRF_GATED(rdma_connect(conn->id, &param)) ? mrf_verbs_errno() : 0;
}

/* librdmacm does not know of the queue pair, so it neither moves it nor tells its number. */
static int get_ready(struct mrf_vconn *conn, struct rdma_conn_param *param)
{
	param->qp_num = conn->qp->qp_num;
	param->srq = conn->qp->srq != NULL;
	return mrf_qp_get_ready(conn);
}

int mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = RD_ATOMIC,
		.initiator_depth = RD_ATOMIC,
		.rnr_retry_count = RNR_FOR_EVER,
	};
	int ret = conn->sends_only ? get_ready(conn, &param) : 0;

	if (ret)
		return ret;
	return MRF_GATED(rdma_accept(conn->id, &param)) ? mrf_verbs_errno() : 0;
}

void mrf_vconn_reject(struct mrf_vconn *conn, const void *data, size_t len)
{
	(void)MRF_GATED(rdma_reject(conn->id, data, (uint8_t)len));
}

int mrf_vconn_disconnect(struct mrf_vconn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/*
	 * An id that is not connected (any more) refuses, and an id knows only its own
	 * queue pair; but the flushes must come in any case.
	 */
	(void)MRF_GATED(rdma_disconnect(conn->id));
	return conn->qp ? mrf_verbs_ret(ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE)) : 0;
}

void mrf_vconn_peer_addr(const struct mrf_vconn *conn, union mrf_addr *addr)
{
	mrf_addr_set(addr, rdma_get_peer_addr(conn->id), SIZE_MAX);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "base/addr.h"
#include "base/lock.h"
#include "verbs/verbs_int.h"
#include "verbs/vloop.h"

#define DEPTH 4
#define RD_ATOMIC 16
#define TIMEOUT 14 /* 67 ms; nothing gets lost on the way to oneself */
#define RETRY 6	   /* 7 would be for ever */
/* Most operations are done by then; the others wait for a thread of the kernel. */
#define SPINS 200
#define WAIT_MS 100
#define WAITS 100 /* far more than all retries take */

struct mrf_vloop {
	struct mrf_vcq *cq;
	struct ibv_qp *here;  /* work requests are posted to it */
	struct ibv_qp *there; /* and it answers them */
};

/* How the device calls its own address. */
struct self {
	uint8_t port;
	int gid_index;
	union ibv_gid gid;
	enum ibv_mtu mtu;
};

/* The address in a GID: IPv6 as it is, IPv4 mapped. */
static bool is_addr(const union ibv_gid *gid, const struct sockaddr *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	size_t len;
	const uint8_t *host = mrf_addr_host(addr, &len), *tail = gid->raw + sizeof(gid->raw) - len;

	return !memcmp(tail, host, len) &&
	       (tail == gid->raw || !memcmp(gid->raw, mapped, sizeof(mapped)));
}

/*
 * Returns 0 if the address is at this port, otherwise -FI_EADDRNOTAVAIL; any other error:
 * there is no such port.
 */
static int find_at_port(const struct mrf_vdev *dev, const struct sockaddr *addr, struct self *self)
{
	struct ibv_port_attr port;
	int ret;

	memset(&port, 0, sizeof(port));
	ret = mrf_verbs_ret(ibv_query_port(dev->ctx, self->port, &port));
	if (ret)
		return ret;
	self->mtu = port.active_mtu;
	for (self->gid_index = 0; self->gid_index < port.gid_tbl_len; self->gid_index++) {
		if (!ibv_query_gid(dev->ctx, self->port, self->gid_index, &self->gid) &&
		    is_addr(&self->gid, addr))
			return 0;
	}
	return -FI_EADDRNOTAVAIL;
}

static int find_self(const struct mrf_vdev *dev, const struct sockaddr *addr, struct self *self)
{
	int ret;

	self->port = 1;
	while ((ret = find_at_port(dev, addr, self)) == -FI_EADDRNOTAVAIL)
		self->port++;
	return ret;
}

static struct ibv_qp *loop_qp_create(struct mrf_vpd *pd, struct mrf_vcq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = 1,
			 .max_send_sge = MRF_VLOOP_SGE,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd->pd, &init);
}

static int to_init(struct ibv_qp *qp, const struct self *self, unsigned access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = self->port,
				    .qp_access_flags = access };

	return mrf_verbs_ret(ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(struct ibv_qp *qp, const struct self *self, uint32_t other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = self->mtu,
		.dest_qp_num = other,
		.max_dest_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = self->port,
			     .grh = { .dgid = self->gid,
				      .sgid_index = (uint8_t)self->gid_index,
				      .hop_limit = 1 } },
	};

	return mrf_verbs_ret(ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = TIMEOUT,
				    .retry_cnt = RETRY,
				    .rnr_retry = RETRY,
				    .max_rd_atomic = RD_ATOMIC };

	return mrf_verbs_ret(ibv_modify_qp(qp, &attr,
					   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						   IBV_QP_MAX_QP_RD_ATOMIC));
}

#define ALL_REMOTE (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static int connect_both(struct mrf_vloop *loop, const struct self *self)
{
	int ret = to_init(loop->here, self, 0);

	if (!ret)
		ret = to_init(loop->there, self, ALL_REMOTE);
	if (!ret)
		ret = to_rtr(loop->here, self, loop->there->qp_num);
	if (!ret)
		ret = to_rtr(loop->there, self, loop->here->qp_num);
	return ret ? ret : to_rts(loop->here);
}

static int create_both(struct mrf_vloop *loop, struct mrf_vpd *pd)
{
	loop->here = loop_qp_create(pd, loop->cq);
	if (!loop->here)
		return mrf_verbs_errno();
	loop->there = loop_qp_create(pd, loop->cq);
	return loop->there ? 0 : mrf_verbs_errno();
}

int mrf_vloop_open(struct mrf_vdev *dev, const struct sockaddr *addr, struct mrf_vpd *pd,
		   struct mrf_vloop **out)
{
	struct mrf_vloop *loop = calloc(1, sizeof(*loop));
	struct self self;
	int ret;

	mrf_slow_call();
	if (!loop)
		return -FI_ENOMEM;
	ret = find_self(dev, addr, &self);
	if (!ret)
		ret = mrf_vcq_open(dev, 2 * DEPTH, &loop->cq);
	if (!ret)
		ret = create_both(loop, pd);
	if (!ret)
		ret = connect_both(loop, &self);
	if (ret) {
		mrf_vloop_close(loop);
		return ret;
	}
	*out = loop;
	return 0;
}

void mrf_vloop_close(struct mrf_vloop *loop)
{
	if (loop->here)
		mrf_qp_destroy(loop->here);
	if (loop->there)
		mrf_qp_destroy(loop->there);
	if (loop->cq)
		mrf_vcq_close(loop->cq);
	free(loop);
}

/* --- running ---------------------------------------------------------------------- */

/* Sleeps until the CQ announces a completion, unless it already has. */
static int poll_asleep(struct mrf_vcq *cq, struct mrf_wc *wc)
{
	struct pollfd fd = { .fd = mrf_vcq_fd(cq), .events = POLLIN };
	int n;

	mrf_vcq_ack(cq);
	mrf_vcq_arm(cq);
	n = mrf_vcq_poll(cq, wc, 1);
	if (!n)
		poll(&fd, 1, WAIT_MS);
	return n;
}

static int wait_for(struct mrf_vcq *cq, struct mrf_wc *wc)
{
	int i, n = 0;

	for (i = 0; !n && i < SPINS; i++)
		n = mrf_vcq_poll(cq, wc, 1);
	for (i = 0; !n && i < WAITS; i++)
		n = poll_asleep(cq, wc);
	return n ? n : -FI_EIO;
}

/*
 * The work request failed at this end. An atomic operation may nevertheless have run: its
 * acknowledgement was lost, and it was to be sent again. A copy has not run, unless some
 * of its pieces were filled.
 */
static bool harmless(const struct mrf_vwr *wr)
{
	return wr->op == MRF_VWR_WRITE || (wr->op == MRF_VWR_READ && wr->nsge == 1);
}

int mrf_vloop_run(struct mrf_vloop *loop, const struct mrf_vwr *wr)
{
	struct mrf_wc wc;
	int ret = mrf_qp_post(loop->here, wr);

	mrf_slow_call();
	if (ret)
		return ret;
	ret = wait_for(loop->cq, &wc);
	if (ret < 0)
		return ret;
	switch (wc.status) {
	case MRF_WC_OK:
		return 0;
	case MRF_WC_REFUSED:
		return -FI_EACCES;
	case MRF_WC_LOCAL:
	case MRF_WC_UNSENT:
	case MRF_WC_FLUSHED:
		return harmless(wr) ? -FI_EACCES : -FI_EIO;
	default:
		return -FI_EIO;
	}
}

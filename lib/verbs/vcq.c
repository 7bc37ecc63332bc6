/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "verbs/vcq.h"
#include "verbs/verbs_int.h"

#define POLL_BATCH 16

static int open_channel(struct mrf_vdev *dev, struct ibv_comp_channel **channel)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	int flags;

	if (!ch)
		return mrf_verbs_errno();
	ch->fd = mrf_fd_high(ch->fd);
	flags = fcntl(ch->fd, F_GETFL);
	if (flags < 0 || fcntl(ch->fd, F_SETFL, flags | O_NONBLOCK)) {
		int ret = mrf_verbs_errno();

		ibv_destroy_comp_channel(ch);
		return ret;
	}
	*channel = ch;
	return 0;
}

static int cq_create(struct ibv_context *ctx, size_t depth, struct ibv_comp_channel *channel,
		     struct mrf_vcq **out)
{
	struct mrf_vcq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return -FI_ENOMEM;
	cq->channel = channel;
	cq->cq = ibv_create_cq(ctx, (int)depth, cq, channel, 0);
	if (!cq->cq) {
		int ret = mrf_verbs_errno();

		free(cq);
		return ret;
	}
	*out = cq;
	return 0;
}

int mrf_vcq_open(struct mrf_vdev *dev, size_t depth, struct mrf_vcq **out)
{
	struct ibv_comp_channel *channel;
	int ret = open_channel(dev, &channel);

	mrf_slow_call();
	if (ret)
		return ret;
	ret = cq_create(dev->ctx, depth, channel, out);
	if (ret)
		ibv_destroy_comp_channel(channel);
	else
		(*out)->own_channel = true;
	return ret;
}

int mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **out)
{
	mrf_slow_call();
	return cq_create(first->cq->context, depth, first->channel, out);
}

void mrf_vcq_close(struct mrf_vcq *cq)
{
	int ret;

	mrf_slow_call();
	/* Destroying a queue of a shared channel discards its pending events. */
	if (cq->own_channel)
		mrf_vcq_ack(cq);
	ret = mrf_verbs_ret(ibv_destroy_cq(cq->cq));
	if (ret)
		mrf_warn(FI_LOG_CQ, 3492, "the kernel did not release a completion queue: error %d",
			 -ret);
	if (cq->own_channel)
		ibv_destroy_comp_channel(cq->channel);
	free(cq);
}

int mrf_vcq_grow(struct mrf_vcq *cq, size_t depth)
{
	mrf_slow_call();
	return mrf_verbs_ret(ibv_resize_cq(cq->cq, (int)depth));
}

static enum mrf_wc_status to_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return MRF_WC_OK;
	case IBV_WC_WR_FLUSH_ERR:
		return MRF_WC_FLUSHED;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return MRF_WC_REFUSED;
	case IBV_WC_LOC_QP_OP_ERR:
		return MRF_WC_UNSENT;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return MRF_WC_LOCAL;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return MRF_WC_TIMEOUT;
	default:
		return MRF_WC_OTHER;
	}
}

static enum mrf_wc_kind to_kind(const struct ibv_wc *wc)
{
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return MRF_WC_RECV_IMM;
	if (wc->opcode != IBV_WC_RECV)
		return MRF_WC_SENT;
	return wc->wc_flags & IBV_WC_WITH_IMM ? MRF_WC_RECV_SEND_IMM : MRF_WC_RECV;
}

/*
 * Fills in only what this kind has: most completions are of sends, which have nothing but
 * their end.
 */
static inline void convert(const struct ibv_wc *wc, struct mrf_wc *out)
{
	out->wr_id = wc->wr_id;
	out->status = mrf_likely(wc->status == IBV_WC_SUCCESS) ? MRF_WC_OK : to_status(wc->status);
	out->raw_status = (int)wc->status;
	out->kind = MRF_WC_SENT;
	if (wc->opcode & IBV_WC_RECV) {
		out->kind = to_kind(wc);
		out->byte_len = wc->byte_len;
		out->imm = ntohl(wc->imm_data);
	}
}

static inline int take_some(struct mrf_vcq *cq, struct ibv_wc *wc, int n)
{
	int got = ibv_poll_cq(cq->cq, n < POLL_BATCH ? n : POLL_BATCH, wc);

	if (mrf_unlikely(got < 0))
		return -FI_EIO;
	if (got)
		cq->armed = false;
	return got;
}

int mrf_vcq_poll(struct mrf_vcq *cq, struct mrf_wc *out, int n)
{
	struct ibv_wc wc[POLL_BATCH];
	int i, got = take_some(cq, wc, n);

	for (i = 0; i < got; i++)
		convert(&wc[i], &out[i]);
	return got;
}

int mrf_vcq_poll_from(struct mrf_vcq *cq, struct mrf_wc *out, int n)
{
	struct ibv_wc wc[POLL_BATCH];
	int i, got = take_some(cq, wc, n);

	for (i = 0; i < got; i++) {
		convert(&wc[i], &out[i]);
		out[i].qpn = wc[i].qp_num;
	}
	return got;
}

void mrf_vcq_arm(struct mrf_vcq *cq)
{
	int err = ibv_req_notify_cq(cq->cq, 0);

	if (mrf_unlikely(err) && !cq->deaf)
		mrf_warn(FI_LOG_CQ, 3495,
			 "the kernel does not announce completions: error %d; they are "
			 "found when the application looks for them",
			 err);
	cq->deaf = err;
	cq->armed = !err;
}

void mrf_vcq_rearm(struct mrf_vcq *cq, bool fired)
{
	if (cq->armed && !fired)
		return;
	mrf_vcq_ack(cq);
	mrf_vcq_arm(cq);
}

struct mrf_vcq *mrf_vcq_ack_one(struct mrf_vcq *cq)
{
	struct ibv_cq *from;
	struct mrf_vcq *fired;
	void *context;

	if (ibv_get_cq_event(cq->channel, &from, &context))
		return NULL;
	ibv_ack_cq_events(from, 1);
	fired = context;
	fired->armed = false;
	return fired;
}

void mrf_vcq_ack(struct mrf_vcq *cq)
{
	while (mrf_vcq_ack_one(cq))
		;
}

int mrf_vcq_fd(const struct mrf_vcq *cq)
{
	return cq->channel->fd;
}

const char *mrf_wc_status_text(int raw_status)
{
	return ibv_wc_status_str((enum ibv_wc_status)raw_status);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages as libibverbs carries them: a connected queue pair, receives posted to it. */
#include "cost_pair.h"
#include "message.h"

static void post(struct message_end *end, size_t len)
{
	struct raw *raw = end->of;
	struct ibv_sge sge = { .addr = (uintptr_t)raw->mr->addr,
			       .length = (uint32_t)len,
			       .lkey = raw->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	bench_must("ibv_post_recv", ibv_post_recv(raw->id->qp, &wr, &bad));
}

static int send_one(struct message_end *end, size_t len)
{
	struct raw *raw = end->of;
	struct ibv_sge sge = { .addr = (uintptr_t)raw->mr->addr,
			       .length = (uint32_t)len,
			       .lkey = raw->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (len <= RAW_INLINE ? IBV_SEND_INLINE : 0u),
	};

	bench_must("ibv_post_send", ibv_post_send(raw->id->qp, &wr, &bad));
	return 1;
}

static unsigned poll_one(struct message_end *end)
{
	struct raw *raw = end->of;
	struct ibv_wc wc[WORK_DEPTH];
	unsigned come = 0;
	int n = ibv_poll_cq(raw->cq, WORK_DEPTH, wc);

	for (int i = 0; i < n; i++) {
		bench_must("completion", wc[i].status);
		come += wc[i].opcode == IBV_WC_RECV;
	}
	return come;
}

void message_open_raw(struct message_end end[2])
{
	struct raw *of[] = { &pair_raw_initiator, &pair_raw_target };

	pair_connect_raw(bench_alloc(MESSAGE_MAX), bench_alloc(MESSAGE_MAX), MESSAGE_MAX);
	for (int i = 0; i < 2; i++)
		end[i] = (struct message_end){
			.of = of[i], .post = post, .send = send_one, .poll = poll_one
		};
}

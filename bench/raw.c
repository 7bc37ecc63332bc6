/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "bench.h"
#include "raw.h"

#define TIMEOUT_MS 5000
#define RAW_RECVS 64 /* as the library's queue pairs */

static struct sockaddr_in address(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = port };

	inet_pton(AF_INET, BENCH_ADDRESS, &addr.sin_addr);
	return addr;
}

void raw_open(struct raw *raw)
{
	struct sockaddr_in addr = address(0);

	raw->channel = rdma_create_event_channel();
	bench_must_errno("rdma_create_event_channel", !!raw->channel);
	bench_must_errno("rdma_create_id",
			 !rdma_create_id(raw->channel, &raw->bound, NULL, RDMA_PS_TCP));
	bench_must_errno("rdma_bind_addr", !rdma_bind_addr(raw->bound, (struct sockaddr *)&addr));
	raw->pd = ibv_alloc_pd(raw->bound->verbs);
	bench_must_errno("ibv_alloc_pd", !!raw->pd);
}

/* Takes the next event, which has to be the one. The id of a new connection, else NULL.
 */
static struct rdma_cm_id *await(struct raw *raw, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_id *id = NULL;
	struct rdma_cm_event *event;

	bench_must_errno("rdma_get_cm_event", !rdma_get_cm_event(raw->channel, &event));
	if (event->event != wanted) {
		fprintf(stderr, "bench: %s instead of %s\n", rdma_event_str(event->event),
			rdma_event_str(wanted));
		exit(2);
	}
	if (wanted == RDMA_CM_EVENT_CONNECT_REQUEST)
		id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void make_qp(struct raw *raw, void *buf, size_t len)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 127,
			 .max_recv_wr = RAW_RECVS,
			 .max_send_sge = 16,
			 .max_recv_sge = 1,
			 .max_inline_data = RAW_INLINE },
	};

	if (raw->takes)
		raw->arrived = ibv_create_comp_channel(raw->bound->verbs);
	raw->cq = ibv_create_cq(raw->bound->verbs, 1024, NULL, raw->arrived, 0);
	bench_must_errno("ibv_create_cq", !!raw->cq);
	init.send_cq = init.recv_cq = raw->cq;
	bench_must_errno("rdma_create_qp", !rdma_create_qp(raw->id, raw->pd, &init));
	raw->mr = ibv_reg_mr(raw->pd, buf, len, RAW_RIGHTS);
	bench_must_errno("ibv_reg_mr", !!raw->mr);
}

static void post_recv(struct raw *raw)
{
	struct ibv_recv_wr *bad, wr = { .num_sge = 0 };

	bench_must("ibv_post_recv", ibv_post_recv(raw->id->qp, &wr, &bad));
}

static void take_all(struct raw *raw)
{
	struct ibv_wc wc[WORK_DEPTH];
	int n;

	while ((n = ibv_poll_cq(raw->cq, WORK_DEPTH, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			/* The last one when the initiator ends. */
			if (wc[i].status)
				return;
			post_recv(raw);
			raw->taken++;
		}
	}
}

void *raw_take(void *arg)
{
	struct raw *raw = arg;
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		bench_must("ibv_req_notify_cq", ibv_req_notify_cq(raw->cq, 0));
		take_all(raw);
		bench_must_errno("ibv_get_cq_event",
				 !ibv_get_cq_event(raw->arrived, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

static struct rdma_conn_param param(void)
{
	return (struct rdma_conn_param){ .responder_resources = WORK_DEPTH,
					 .initiator_depth = WORK_DEPTH,
					 .retry_count = 6,
					 .rnr_retry_count = 7 };
}

void raw_connect(struct raw *raw, uint16_t port, void *buf, size_t len)
{
	struct sockaddr_in src = address(0), dst = address(port);
	struct rdma_conn_param conn = param();

	bench_must_errno("rdma_create_id",
			 !rdma_create_id(raw->channel, &raw->id, NULL, RDMA_PS_TCP));
	bench_must_errno("rdma_resolve_addr",
			 !rdma_resolve_addr(raw->id, (struct sockaddr *)&src,
					    (struct sockaddr *)&dst, TIMEOUT_MS));
	await(raw, RDMA_CM_EVENT_ADDR_RESOLVED);
	bench_must_errno("rdma_resolve_route", !rdma_resolve_route(raw->id, TIMEOUT_MS));
	await(raw, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(raw, buf, len);
	bench_must_errno("rdma_connect", !rdma_connect(raw->id, &conn));
	await(raw, RDMA_CM_EVENT_ESTABLISHED);
}

uint16_t raw_listen(struct raw *raw)
{
	bench_must_errno("rdma_listen", !rdma_listen(raw->bound, 1));
	return rdma_get_src_port(raw->bound);
}

void raw_accept(struct raw *raw, void *buf, size_t len)
{
	struct rdma_conn_param conn = param();

	raw->id = await(raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(raw, buf, len);
	for (int i = 0; raw->takes && i < RAW_RECVS; i++)
		post_recv(raw);
	bench_must_errno("rdma_accept", !rdma_accept(raw->id, &conn));
	await(raw, RDMA_CM_EVENT_ESTABLISHED);
}

void raw_register(struct raw *raw, const struct work_register *work)
{
	for (unsigned i = 0; i < work->times; i++) {
		struct ibv_mr *mr = ibv_reg_mr(raw->pd, work->buf, work->len, RAW_RIGHTS);

		bench_must_errno("ibv_reg_mr", !!mr);
		bench_must("ibv_dereg_mr", ibv_dereg_mr(mr));
	}
}

static void post(struct raw *raw, const struct work_access *work)
{
	struct ibv_sge sge = { .addr = (uintptr_t)work->buf,
			       .length = (uint32_t)work->len,
			       .lkey = raw->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = work->use_imm ? IBV_WR_RDMA_WRITE_WITH_IMM
			  : work->write ? IBV_WR_RDMA_WRITE
					: IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED | (work->use_inline ? IBV_SEND_INLINE : 0u),
		.wr.rdma = { .remote_addr = work->remote.addr, .rkey = (uint32_t)work->remote.key },
	};

	if (work->fetch_add) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = work->remote.addr;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = (uint32_t)work->remote.key;
	}
	bench_must("ibv_post_send", ibv_post_send(raw->id->qp, &wr, &bad));
}

void raw_access(struct raw *raw, const struct work_access *work)
{
	struct ibv_wc wc[WORK_DEPTH];
	unsigned posted = 0, done = 0;

	while (done < work->times) {
		int n;

		for (; posted < work->times && posted - done < work->depth; posted++)
			post(raw, work);
		n = ibv_poll_cq(raw->cq, WORK_DEPTH, wc);
		bench_must_errno("ibv_poll_cq", n >= 0);
		for (int i = 0; i < n; i++)
			bench_must("completion", wc[i].status);
		done += (unsigned)n;
	}
}

double raw_completions(struct raw *raw, const struct work_access *work, int batch)
{
	struct ibv_wc wc[WORK_COMPLETIONS];
	uint64_t start;
	int done = 0;

	for (int i = 0; i < WORK_COMPLETIONS; i++)
		post(raw, work);
	usleep(WORK_REST_US);
	start = bench_now();
	while (done < WORK_COMPLETIONS)
		done += ibv_poll_cq(raw->cq, batch, wc);
	return (double)(bench_now() - start) / WORK_COMPLETIONS;
}

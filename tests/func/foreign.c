/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is not the library: it speaks verbs, and the protocol by hand, and does
 * what the lines on its standard input say, whether or not a decent peer would. Each is
 * answered with one line. Numbers are as strtoull takes them, data are hexadecimal, and
 * "-" stands for what a decent peer would send.
 *
 *   connect SLOT IP PORT DATA     connected DATA, or: rejected STATUS DATA
 *   listen IP                     port PORT
 *   take SLOT                     request DATA
 *   accept SLOT DATA              accepted
 *   reject SLOT DATA              rejected
 *   ask SLOT KEY ADDR LEN         answer STATUS SEGMENTS RKEY POSITION IOVA
 *   flush SLOT KEY ADDR LEN       reply STATUS DONE, to one such request of a connection
 *   write SLOT RKEY ADDR LEN BYTE wc STATUS (enum ibv_wc_status)
 *   read SLOT RKEY ADDR LEN BYTE  wc STATUS, and "same" if all that was read is BYTE
 *   close SLOT                    closed
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include "proto/greeting.h"

#define SLOTS 4
#define RECVS 8
#define ROOM 4096
#define WAIT_MS 15000

struct conn {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t recv[RECVS][MRF_PROTO_MAX_MSG];
	uint8_t room[ROOM];
	uint64_t cookie;
	struct ibv_wc came[RECVS]; /* messages that nobody has waited for yet */
	unsigned ncame;
};

static struct conn conns[SLOTS];
static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;

static void die(const char *what)
{
	printf("error %s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

#define must(ok)                  \
	do {                      \
		if (!(ok))        \
			die(#ok); \
	} while (0)

/* --- lines -------------------------------------------------------------------------- */

static const char *word(void)
{
	const char *w = strtok(NULL, " \n");

	if (!w) {
		puts("error: a word is missing");
		exit(1);
	}
	return w;
}

static uint64_t number(void)
{
	return strtoull(word(), NULL, 0);
}

static struct conn *slot(void)
{
	return &conns[number() % SLOTS];
}

/* Returns the length; 0 for "-". */
static size_t data(uint8_t *buf, size_t room)
{
	const char *w = word();
	size_t n = 0;
	unsigned byte;

	for (; n < room && sscanf(w, "%2x", &byte) == 1; w += 2)
		buf[n++] = (uint8_t)byte;
	return n;
}

static void say_data(const char *what, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t i;

	printf("%s ", what);
	for (i = 0; i < len; i++)
		printf("%02x", p[i]);
	puts(len ? "" : "-");
}

/* --- connections -------------------------------------------------------------------- */

static void post_recv(struct conn *c, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)c->recv[i], sizeof(c->recv[i]), c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(c->id->qp, &wr, &bad));
}

static void make_qp(struct conn *c)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	unsigned i;

	must((c->pd = ibv_alloc_pd(c->id->verbs)) != NULL);
	must((c->cq = ibv_create_cq(c->id->verbs, 64, NULL, NULL, 0)) != NULL);
	must((c->mr = ibv_reg_mr(c->pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE)) != NULL);
	attr.send_cq = attr.recv_cq = c->cq;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	must(!rdma_create_qp(c->id, c->pd, &attr));
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
}

static void hang_up(struct conn *c)
{
	if (!c->id)
		return;
	rdma_disconnect(c->id);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	rdma_destroy_id(c->id);
	if (c->channel)
		rdma_destroy_event_channel(c->channel);
	memset(c, 0, sizeof(*c));
}

/* The next event's type, with its private data. */
static int event(struct rdma_event_channel *from, int *status, uint8_t *buf, size_t *len,
		 struct rdma_cm_id **id)
{
	struct rdma_cm_event *e;
	int type;

	must(!rdma_get_cm_event(from, &e));
	type = e->event;
	if (status)
		*status = e->status;
	if (id)
		*id = e->id;
	if (buf) {
		*len = e->param.conn.private_data ? e->param.conn.private_data_len : 0;
		memcpy(buf, e->param.conn.private_data, *len);
	}
	rdma_ack_cm_event(e);
	return type;
}

static struct sockaddr_in address(bool with_port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	must(inet_pton(AF_INET, word(), &in.sin_addr) == 1);
	if (with_port)
		in.sin_port = htons((uint16_t)number());
	return in;
}

#define DEPTH .responder_resources = 4, .initiator_depth = 4, .retry_count = 5, .rnr_retry_count = 7

static void do_connect(void)
{
	struct conn *c = slot();
	struct sockaddr_in to = address(true);
	struct mrf_hello hello = { .ticket = 1 };
	struct rdma_conn_param param = { DEPTH };
	uint8_t buf[256];
	size_t len;
	int status;

	len = data(buf, sizeof(buf));
	if (!len)
		len = mrf_hello_encode(&hello, buf);
	param.private_data = buf;
	param.private_data_len = (uint8_t)len;
	hang_up(c);
	must((c->channel = rdma_create_event_channel()) != NULL);
	must(!rdma_create_id(c->channel, &c->id, c, RDMA_PS_TCP));
	must(!rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&to, 2000));
	must(event(c->channel, NULL, NULL, NULL, NULL) == RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(c->id, 2000));
	must(event(c->channel, NULL, NULL, NULL, NULL) == RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(c);
	must(!rdma_connect(c->id, &param));
	if (event(c->channel, &status, buf, &len, NULL) == RDMA_CM_EVENT_ESTABLISHED) {
		say_data("connected", buf, len);
	} else {
		printf("rejected %d", status);
		say_data("", buf, len);
	}
}

static void do_listen(void)
{
	struct sockaddr_in at = address(false);

	must((channel = rdma_create_event_channel()) != NULL);
	must(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	must(!rdma_bind_addr(listener, (struct sockaddr *)&at));
	must(!rdma_listen(listener, 8));
	printf("port %u\n", ntohs(rdma_get_src_port(listener)));
}

static void do_take(void)
{
	struct conn *c = slot();
	uint8_t buf[256];
	size_t len;

	hang_up(c);
	while (event(channel, NULL, buf, &len, &c->id) != RDMA_CM_EVENT_CONNECT_REQUEST)
		;
	make_qp(c);
	say_data("request", buf, len);
}

static void do_accept(void)
{
	struct conn *c = slot();
	struct mrf_welcome welcome = { .instance = 2, .space_id = 3, .asks = 8 };
	struct rdma_conn_param param = { DEPTH };
	uint8_t buf[256];
	size_t len = data(buf, sizeof(buf));

	if (!len)
		len = mrf_welcome_encode(&welcome, buf);
	param.private_data = buf;
	param.private_data_len = (uint8_t)len;
	must(!rdma_accept(c->id, &param));
	puts("accepted");
}

static void do_reject(void)
{
	struct conn *c = slot();
	uint8_t buf[256];
	size_t len = data(buf, sizeof(buf));

	if (!len)
		len = mrf_refuse_encode(MRF_REFUSE_CLOSING, buf);
	must(!rdma_reject(c->id, buf, (uint8_t)len));
	puts("rejected");
}

/* --- work ----------------------------------------------------------------------------- */

static struct ibv_wc next_completion(struct conn *c)
{
	struct ibv_wc wc;
	int ms;

	for (ms = 0; ms < WAIT_MS; ms++) {
		if (ibv_poll_cq(c->cq, 1, &wc))
			return wc;
		usleep(1000);
	}
	errno = ETIMEDOUT;
	die("no completion");
	return wc;
}

/* A message may come before the completion of what it answers. */
static struct ibv_wc wait_for_post(struct conn *c)
{
	struct ibv_wc wc;

	while ((wc = next_completion(c)).wr_id < RECVS)
		c->came[c->ncame++] = wc;
	return wc;
}

static struct ibv_wc wait_for_message(struct conn *c)
{
	struct ibv_wc wc = c->came[0];

	if (!c->ncame)
		return next_completion(c);
	memmove(c->came, c->came + 1, --c->ncame * sizeof(wc));
	return wc;
}

static int post(struct conn *c, enum ibv_wr_opcode op, size_t len, uint32_t rkey, uint64_t addr)
{
	struct ibv_sge sge = { (uintptr_t)c->room, (uint32_t)len, c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = RECVS,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } };
	struct ibv_send_wr *bad;

	must(!ibv_post_send(c->id->qp, &wr, &bad));
	return (int)wait_for_post(c).status;
}

static void do_ask(void)
{
	struct conn *c = slot();
	struct mrf_ask ask = { .cookie = ++c->cookie };
	struct mrf_answer answer = { 0 };
	struct ibv_wc wc;

	ask.key = number();
	ask.addr = number();
	ask.len = number();
	must(post(c, IBV_WR_SEND, mrf_ask_encode(&ask, c->room), 0, 0) == IBV_WC_SUCCESS);
	/* There may be notes before it. */
	do {
		wc = wait_for_message(c);
		must(wc.status == IBV_WC_SUCCESS);
		if (mrf_answer_decode(c->recv[wc.wr_id], wc.byte_len, &answer))
			answer.cookie = 0;
		post_recv(c, (unsigned)wc.wr_id);
	} while (answer.cookie != ask.cookie);
	printf("answer %u %u %#x %#llx %#x\n", answer.status, answer.nseg, answer.seg[0].rkey,
	       (unsigned long long)answer.seg[0].pos, answer.seg[0].iova_off);
}

static void do_flush(void)
{
	struct conn *c = slot();
	struct mrf_request request = { .type = MRF_MSG_FLUSH, .what = MRF_FLUSH_DO };
	struct mrf_reply reply;
	struct ibv_wc wc;
	int ret;

	request.key = number();
	request.addr = number();
	request.len = number();
	must(post(c, IBV_WR_SEND, mrf_request_encode(&request, c->room), 0, 0) == IBV_WC_SUCCESS);
	do {
		wc = wait_for_message(c);
		must(wc.status == IBV_WC_SUCCESS);
		ret = mrf_reply_decode(c->recv[wc.wr_id], wc.byte_len, &reply);
		post_recv(c, (unsigned)wc.wr_id);
	} while (ret);
	printf("reply %u %llu\n", reply.status, (unsigned long long)reply.done);
}

static void do_access(bool read)
{
	struct conn *c = slot();
	uint32_t rkey = (uint32_t)number();
	uint64_t addr = number();
	size_t len = number() % ROOM, i;
	int byte = (int)number();
	int status;

	memset(c->room, read ? ~byte : byte, len);
	status = post(c, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, len, rkey, addr);
	for (i = 0; i < len && c->room[i] == (uint8_t)byte; i++)
		;
	printf("wc %d%s\n", status, i == len ? " same" : "");
}

static bool run(char *line)
{
	const char *command = strtok(line, " \n");

	if (!command)
		return false;
	if (!strcmp(command, "connect"))
		do_connect();
	else if (!strcmp(command, "listen"))
		do_listen();
	else if (!strcmp(command, "take"))
		do_take();
	else if (!strcmp(command, "accept"))
		do_accept();
	else if (!strcmp(command, "reject"))
		do_reject();
	else if (!strcmp(command, "ask"))
		do_ask();
	else if (!strcmp(command, "flush"))
		do_flush();
	else if (!strcmp(command, "write") || !strcmp(command, "read"))
		do_access(*command == 'r');
	else if (!strcmp(command, "close"))
		hang_up(slot()), puts("closed");
	else
		return false;
	return true;
}

int main(void)
{
	char line[2048];

	while (fgets(line, sizeof(line), stdin)) {
		alarm(2 * WAIT_MS / 1000);
		if (!run(line)) {
			puts("error: no such command");
			return 1;
		}
		fflush(stdout);
	}
	for (int i = 0; i < SLOTS; i++)
		hang_up(&conns[i]);
	return 0;
}

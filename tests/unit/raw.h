/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process without our library on the fake fabric: hand-made initiators and targets, for
 * tests of what comes over the wire from something that is not this library, or not well.
 */
#ifndef RAW_H
#define RAW_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include "ep_fixture.h"
#include "proto/greeting.h"

#define SLOTS 128
#define SLOT MRF_PROTO_MAX_REQUEST
#define INLINE 512

/* A process without our library: a device, a channel, one connection. */
struct raw {
	struct mrf_vdev *dev;
	struct mrf_vpd *pd;
	struct mrf_vcq *cq;
	struct mrf_vcm *cm;
	struct mrf_vconn *conn; /* NULL: none (any more) */
	struct mrf_vconn *listener;
	struct mrf_vmr mr;
	uint8_t slots[SLOTS][SLOT];
	uint8_t out[SLOT + 1]; /* a long message on its way; behind the slots, in mr, too */
	uint16_t port;
	uint8_t host;	   /* 10.99.1.host is where it dials from; 0: 10.99.1.1, as nodes */
	unsigned receives; /* that it posts; 0: SLOTS */
};

static inline struct sockaddr_in at_port(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x0a630101) };
}

static inline void raw_open(struct raw *r)
{
	struct sockaddr_in addr = at_port(0);

	memset(r, 0, sizeof(*r));
	ck_assert_int_eq(mrf_vdev_open((struct sockaddr *)&addr, &r->dev), 0);
	ck_assert_int_eq(mrf_vpd_alloc(r->dev, &r->pd), 0);
	ck_assert_int_eq(mrf_vcq_open(r->dev, 4096, &r->cq), 0);
	ck_assert_int_eq(mrf_vcm_open(&r->cm), 0);
	ck_assert_int_eq(mrf_vmr_reg(r->pd, r->slots, sizeof(r->slots) + sizeof(r->out),
				     (uintptr_t)r->slots, MRF_RIGHT_LOCAL_WRITE, &r->mr),
			 0);
}

static inline void raw_hang_up(struct raw *r)
{
	if (r->conn)
		mrf_vconn_close(r->conn);
	r->conn = NULL;
}

static inline void raw_close(struct raw *r)
{
	raw_hang_up(r);
	if (r->listener)
		mrf_vconn_close(r->listener);
	mrf_vmr_dereg(&r->mr);
	mrf_vcm_close(r->cm);
	mrf_vcq_close(r->cq);
	mrf_vpd_free(r->pd);
	mrf_vdev_close(r->dev);
}

static inline struct mrf_cm_event raw_event(struct raw *r)
{
	struct mrf_cm_event event = { 0 };

	want_soon(!mrf_vcm_next(r->cm, &event));
	return event;
}

static inline void raw_post_recv(struct raw *r, unsigned slot)
{
	struct mrf_sge sge = { (uintptr_t)r->slots[slot], SLOT, r->mr.lkey };

	ck_assert_int_eq(mrf_vconn_post_recv(r->conn, slot, &sge), 0);
}

static inline void raw_qp(struct raw *r)
{
	struct mrf_vqp_attr attr = { .pd = r->pd,
				     .send_cq = r->cq,
				     .recv_cq = r->cq,
				     .send_depth = SLOTS,
				     .recv_depth = SLOTS,
				     .send_sge = 1,
				     .max_inline = INLINE };
	unsigned i;

	ck_assert_int_eq(mrf_vconn_create_qp(r->conn, &attr), 0);
	for (i = 0; i < (r->receives ? r->receives : SLOTS); i++)
		raw_post_recv(r, i);
}

/* Asks for a connection with these private data; what came of it, which is not confirmed. */
static inline struct mrf_cm_event raw_dial(struct raw *r, uint16_t port, const void *data,
					   size_t len)
{
	struct sockaddr_in src = at_port(0), dst = at_port(port);

	if (r->host)
		src.sin_addr.s_addr = htonl(0x0a630100 | r->host);
	ck_assert_int_eq(mrf_vconn_open(r->cm, NULL, &r->conn), 0);
	ck_assert_int_eq(mrf_vconn_resolve(r->conn, (struct sockaddr *)&src,
					   (struct sockaddr *)&dst, 1000, 14),
			 0);
	ck_assert_int_eq(raw_event(r).type, MRF_CM_ADDR_RESOLVED);
	raw_qp(r);
	ck_assert_int_eq(mrf_vconn_route(r->conn, 1000), 0);
	ck_assert_int_eq(raw_event(r).type, MRF_CM_ROUTE_RESOLVED);
	ck_assert_int_eq(mrf_vconn_connect(r->conn, data, len, 6), 0);
	return raw_event(r);
}

static inline struct mrf_cm_event raw_connect(struct raw *r, uint16_t port, const void *data,
					      size_t len)
{
	struct mrf_cm_event event = raw_dial(r, port, data, len);

	if (event.type == MRF_CM_RESPONSE)
		ck_assert_int_eq(mrf_vconn_establish(r->conn), 0);
	return event;
}

/* Of another initiator each time. */
static inline uint64_t raw_ticket(void)
{
	static uint64_t last;

	return ++last;
}

static inline struct mrf_cm_event raw_greet(struct raw *r, uint16_t port)
{
	struct mrf_hello hello = { .ticket = raw_ticket() };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	return raw_connect(r, port, data, mrf_hello_encode(&hello, data));
}

/* What is longer than INLINE is sent from r->out, where the caller has put it. */
static inline int raw_send(struct raw *r, const void *data, size_t len)
{
	bool is_inline = len <= INLINE;
	struct mrf_sge sge = { (uintptr_t)(is_inline ? data : r->out), (uint32_t)len, r->mr.lkey };
	struct mrf_vwr wr = {
		.wr_id = SLOTS, .op = MRF_VWR_SEND, .is_inline = is_inline, .nsge = 1, .sge = &sge
	};

	return mrf_vconn_post(r->conn, &wr);
}

static inline struct mrf_wc raw_recv(struct raw *r)
{
	struct mrf_wc wc = { 0 };

	do {
		want_soon(mrf_vcq_poll(r->cq, &wc, 1) == 1);
	} while (wc.wr_id == SLOTS && wc.status == MRF_WC_OK);
	return wc;
}

/* Where it listens, in the address vector of from. */
static inline fi_addr_t raw_listen(struct raw *r, struct node *from)
{
	struct sockaddr_in addr = at_port(0);

	ck_assert_int_eq(mrf_vconn_open(r->cm, NULL, &r->listener), 0);
	ck_assert_int_eq(mrf_vconn_bind(r->listener, (struct sockaddr *)&addr), 0);
	ck_assert_int_eq(mrf_vconn_listen(r->listener), 0);
	return node_insert_port(from, ntohs(addr.sin_port));
}

static inline struct mrf_hello raw_take_request(struct raw *r)
{
	struct mrf_cm_event event;
	struct mrf_hello hello = { 0 };

	do {
		event = raw_event(r);
	} while (event.type != MRF_CM_REQUEST);
	ck_assert_int_eq(mrf_hello_decode(event.data, event.len, &hello), 0);
	raw_hang_up(r);
	r->conn = event.incoming;
	raw_qp(r);
	return hello;
}

static inline void raw_accept(struct raw *r, uint32_t asks)
{
	struct mrf_welcome welcome = { .mr_mode = 0, .instance = 5, .asks = asks ? asks : 1 };
	uint8_t data[MRF_PROTO_WELCOME_LEN];
	size_t len = mrf_welcome_encode(&welcome, data);

	if (!asks)
		data[24] = 0;
	ck_assert_int_eq(mrf_vconn_accept(r->conn, data, len), 0);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and completion queues of an RDMA device inside the test program: the ibv_* calls
 * of lib/verbs/vloop.c, vcq.c and the posting half of vqp.c, linked instead of libibverbs. Two
 * queue pairs that are taken through their states as the kernel wants it reach each other's
 * memory, which is that of the process. What is posted is carried out at once, completes when
 * the test says, and is remembered. Counts what is alive, and fails on order. One thread.
 */
#ifndef FAKE_LOOP_H
#define FAKE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

enum fake_loop_call {
	QP_CREATE_CHANNEL,
	QP_CREATE_CQ,
	QP_QUERY_PORT,
	QP_QUERY_GID,
	QP_CREATE,
	QP_MODIFY,
	QP_POST,
	QP_POLL,
	QP_CALLS
};

#define FAKE_LOOP_LKEY 0x11
#define FAKE_LOOP_RKEY 0x22
#define FAKE_LOOP_PORTS 2
#define FAKE_LOOP_GIDS 3

struct fake_loop {
	struct ibv_context ctx; /* what to open things on */
	union ibv_gid gid[FAKE_LOOP_PORTS][FAKE_LOOP_GIDS];
	enum ibv_mtu mtu[FAKE_LOOP_PORTS];
	/* How what is posted ends; SUCCESS: it is carried out, if its keys are the two. */
	enum ibv_wc_status status;
	/* Polls, or with events sleeps, that pass before a completion is there; -1: for ever. */
	int late;
	bool by_event; /* ... and only poll(2) sees that time passes */

	unsigned live;		  /* channels, queues and queue pairs */
	unsigned calls[QP_CALLS]; /* failed ones included */
	unsigned sleeps;	  /* calls of poll(2) */
	unsigned bad_sleeps;	  /* ... that would have slept too long, or not at all */
	unsigned events, acked;	  /* taken from channels, and given back to queues */
	struct ibv_send_wr last;  /* posted */
	struct ibv_sge last_sge[16];
	struct ibv_qp_attr here, there; /* as the two were left: the first made, the second */
	int mask_here, mask_there;	/* all that was ever set */
	/* What the next ibv_poll_cq returns, beside what was posted. */
	struct ibv_wc extra;
	bool has_extra;
};

extern struct fake_loop fake_loop;

/* Forgets everything; nothing may be alive. */
void fake_loop_reset(void);
/* The nth such call from now on (1: the next) fails with errno err. */
void fake_loop_fail(enum fake_loop_call call, unsigned nth, int err);
/* False: it has not come so far. */
bool fake_loop_failed(void);

#endif

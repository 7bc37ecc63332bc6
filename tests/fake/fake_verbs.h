/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA device inside the test program: the few ibv_* and rdma_* calls that opening a
 * device and registering memory need, linked instead of libibverbs and librdmacm. It
 * keeps the kernel's rules for registration, counts what is alive, remembers what it
 * was asked, and fails on order. Calls may come from any thread; the fields are read
 * when no call is running.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define FAKE_DEVICE "rxe0"
#define FAKE_MAX_MR 524287

enum fake_call {
	FAKE_CREATE_CHANNEL,
	FAKE_CREATE_ID,
	FAKE_BIND_ADDR,
	FAKE_OPEN_DEVICE,
	FAKE_QUERY_DEVICE,
	FAKE_ALLOC_PD,
	FAKE_DEALLOC_PD,
	FAKE_REG_MR,
	FAKE_DEREG_MR,
	FAKE_REVOKE_MR, /* the kernel half of it alone, by ioctl */
	FAKE_CLOSE_DEVICE,
	FAKE_DESTROY_ID,
	/* From here on: fake_qp.c */
	FAKE_CREATE_COMP_CHANNEL,
	FAKE_CREATE_CQ,
	FAKE_RESIZE_CQ,
	FAKE_DESTROY_CQ,
	FAKE_POLL_CQ,
	FAKE_REQ_NOTIFY_CQ,
	FAKE_CREATE_SRQ,
	FAKE_POST_SRQ_RECV,
	FAKE_DESTROY_SRQ,
	FAKE_CREATE_QP,
	FAKE_MODIFY_QP,
	FAKE_QUERY_QP,
	FAKE_DESTROY_QP,
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_QUERY_PORT,
	FAKE_QUERY_GID,
	FAKE_LISTEN,
	FAKE_SET_OPTION,
	FAKE_RESOLVE_ADDR,
	FAKE_RESOLVE_ROUTE,
	FAKE_CONNECT,
	FAKE_GET_CM_EVENT,
	FAKE_INIT_QP_ATTR,
	FAKE_ACCEPT,
	FAKE_ESTABLISH,
	FAKE_REJECT,
	FAKE_DISCONNECT,
	FAKE_GET_ASYNC_EVENT,
	FAKE_CALLS
};

/* A registration as the kernel would see it. */
struct fake_mr {
	struct ibv_mr mr;
	uint64_t iova;
	unsigned access;
	struct fake_mr *next;
	struct fake_mr *prev;
};

struct fake_verbs {
	unsigned calls[FAKE_CALLS]; /* since the last reset, failed ones included */
	unsigned live_channels;
	unsigned live_ids;
	unsigned live_contexts;
	unsigned live_pds;
	unsigned live_mrs;
	unsigned live_queues; /* of fake_qp.c: completion channels, queues, queue pairs */
	unsigned access;      /* what the queue pair that was changed last lets its peer do */
	/* The same: whose packets it takes, and the number of the first; of its own packets. */
	struct fake_end {
		uint32_t qpn, psn;
	} other;
	uint32_t sq_psn;
	unsigned max_mr;  /* registering more fails with ENOMEM; may be lowered */
	size_t max_bytes; /* registering more in all does, too; 0: no limit */
	size_t live_bytes;
	uint32_t next_key;	      /* lkey, and rkey with a remote right; may be set */
	struct fake_mr last;	      /* copy of the last successful registration */
	struct ibv_pd *last_pd;	      /* of the last ibv_alloc_pd */
	uint16_t last_port;	      /* of the last rdma_bind_addr, network order */
	const char *barred;	      /* why the files of the device let nobody in; NULL: they do */
	const char *renamed;	      /* the kernel's name of the device now; NULL: as at first */
	bool check_memory;	      /* registering what is not mapped fails with EFAULT */
	struct ibv_async_event event; /* what the device tells next */
	unsigned acked;		      /* events */
	/* What rdma_cm tells; type ADDR_RESOLVED (0): a request. err: errno afterwards. */
	struct fake_cm_event {
		enum rdma_cm_event_type type;
		int status;
		int err;
	} cm_event;
	/* Called at the start of every ibv_dereg_mr and ibv_reg_mr*; may be NULL. */
	void (*on_dereg)(const struct ibv_mr *mr);
	void (*on_reg)(void *addr, size_t len);
};

extern struct fake_verbs fake_verbs;

/* Forgets everything; nothing may be alive. */
void fake_verbs_reset(void);
/*
 * The nth such call from now on (1: the next) fails with errno err. nth 0: take it
 * back.
 */
void fake_verbs_fail(enum fake_call call, unsigned nth, int err);
/* All of them, until taken back. */
void fake_verbs_fail_always(enum fake_call call, int err);
/*
 * The nth call of any kind fails. 0: take it back. err 0: if it is one of librdmacm, and
 * then it does not say why.
 */
void fake_verbs_fail_any(unsigned nth, int err);
/* Which did, or FAKE_CALLS. */
enum fake_call fake_verbs_failed(void);
/* "ibv_reg_mr" and the like. */
const char *fake_verbs_name(enum fake_call call);
/*
 * For fake_qp.c: counts a call; false: it is to fail, errno is set. Memory, zeroed, that no
 * test makes fail; and what is kept of an object that was not destroyed, until the reset.
 */
struct ibv_context *fake_verbs_context(void);
bool fake_verbs_goes_on(enum fake_call call);
void *fake_verbs_zalloc(size_t size);
void fake_verbs_keep(void *object);
/* The device tells this. */
void fake_verbs_tell(struct ibv_async_event event);
/* Things alive of any kind. */
unsigned fake_verbs_live(void);
/* A live registration by its rkey, or NULL. */
const struct fake_mr *fake_verbs_find(uint32_t rkey);
const struct fake_mr *fake_verbs_by_lkey(uint32_t lkey);
/* What the next registration gets for a key; keys go up, unless they are set. */
uint32_t fake_verbs_next_key(void);
/* How many live registrations have a byte of [addr, addr + len). */
unsigned fake_verbs_covering(const void *addr, size_t len);

#endif

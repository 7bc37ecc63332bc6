/* SPDX-License-Identifier: BSD-2-Clause */
/* The reference: libibverbs and librdmacm called directly. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <rdma/rdma_cma.h>
#include "work.h"

#define RAW_RIGHTS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

#define RAW_INLINE 256 /* bytes; as the library's queue pairs */

struct raw {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *bound; /* gives the device; the target listens on it */
	struct rdma_cm_id *id;	  /* the connection; NULL before */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* of the buffer that takes part in accesses */
	/* Of a target of writes with immediate data; set takes before raw_accept. */
	int takes;
	struct ibv_comp_channel *arrived;
	uint64_t taken; /* by raw_take, in its thread */
};

/* The device behind BENCH_ADDRESS and a protection domain. */
void raw_open(struct raw *raw);

/* The initiator's connection, made like those of the library: same attributes. */
void raw_connect(struct raw *raw, uint16_t port, void *buf, size_t len);
/* The target's, in two steps: the initiator needs the port in between. */
uint16_t raw_listen(struct raw *raw);
void raw_accept(struct raw *raw, void *buf, size_t len);

/*
 * Takes immediate data and posts RECVs again for ever, as a program does that counts and has
 * other things to do: asleep until something comes.
 */
void *raw_take(void *raw);

void raw_register(struct raw *raw, const struct work_register *work);
void raw_access(struct raw *raw, const struct work_access *work);
/* ns for each completion: work.h. */
double raw_completions(struct raw *raw, const struct work_access *work, int batch);

#endif

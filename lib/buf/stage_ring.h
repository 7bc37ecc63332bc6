/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory of the host by way of which the bytes of devices go: rings of chunks, made when
 * they are needed, and kept. An endpoint has a pool for its transfers, and one for its lines.
 * Thread-safe.
 */
#ifndef MRF_BUF_STAGE_RING_H
#define MRF_BUF_STAGE_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/lock.h"
#include "contract/budget.h"
#include "verbs/vmr.h"

#define MRF_STAGE_CHUNK MRF_STAGE_PIECE /* bytes that are copied at a time */
#define MRF_STAGE_CHUNKS 8		/* of a ring: both devices and the wire are kept busy */
#define MRF_STAGE_RING (MRF_STAGE_CHUNKS * MRF_STAGE_CHUNK)
#define MRF_STAGE_UNDER_WAY (2 * MRF_STAGE_CHUNK) /* of what arrives */

struct mrf_stage_ring {
	struct mrf_list node; /* in pool->free */
	void *memory;	      /* of MRF_STAGE_RING bytes */
	struct mrf_vmr mr;
};

struct mrf_stage_pool {
	struct mrf_lock lock; /* rank BOUNCE: guards all below */
	struct mrf_list free; /* struct mrf_stage_ring.node */
	unsigned used;	      /* and those that are being made */
	unsigned most;	      /* may be used at a time; constant */
};

void mrf_stage_pool_init(struct mrf_stage_pool *pool, unsigned most);
/* No ring may be in use. */
void mrf_stage_pool_fini(struct mrf_stage_pool *pool);

/*
 * A ring, until mrf_stage_ring_give. -FI_EAGAIN: there is none, but will be when another one is
 * given back; -FI_ENOMEM, logged. No lock is held.
 */
int mrf_stage_ring_take(struct mrf_stage_pool *pool, struct mrf_vpd *pd,
			struct mrf_stage_ring **ring);
/* As mrf_stage_ring_take, but makes none: NULL if none is free. Fast. */
struct mrf_stage_ring *mrf_stage_ring_try(struct mrf_stage_pool *pool);
/* Is any of them used, or being made? Fast. */
bool mrf_stage_ring_is_used(struct mrf_stage_pool *pool);
/* Fast, and allowed under an endpoint's lock. */
void mrf_stage_ring_give(struct mrf_stage_pool *pool, struct mrf_stage_ring *ring);

#endif

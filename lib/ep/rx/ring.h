/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings. A peer that asks about a region with memory of a device gets one: registered memory of
 * ours that it reads and writes by RDMA. Its requests say what is copied between the ring and the
 * region (rx/job_serve.h). Only that peer is told the rkey. But the kernel checks the protection
 * domain, not the connection: another peer of the same class that guesses the rkey reaches the ring
 * over its own connection (docs/THREATS.md).
 *
 * There are MRF_RINGS at a time, and MRF_RINGS_PER_ADDR of them may be of peers at one address. A
 * peer that has asked for nothing for MRF_RING_MS, or for MRF_RING_GRACE_MS while another one needs
 * a ring, loses its connection, and with it the ring: it may have stopped for good. The time runs,
 * too, while the connection is broken or takes in no answers, and only stands still while the
 * target is at one of the peer's requests. A peer that lives connects again when it has something to
 * do. Agent thread.
 */
#ifndef MRF_EP_RX_RING_H
#define MRF_EP_RX_RING_H

#include "ep/link/passive.h"

struct mrf_ring {
	unsigned holds; /* the connection, and the job that is at one of its requests */
	uint8_t *memory;
	bool kept;	   /* by the kernel, so that memory cannot be freed */
	struct mrf_vmr mr; /* gone when the connection is, and so are the next three */
	struct mrf_passive *passive;
	struct mrf_list node; /* in mrf_eps.rings, where the one that was used last is at the end */
	int64_t used;	      /* ms */
};

/*
 * The rkey of the connection's ring, which is made when there is none yet. 0: there is no room
 * for one.
 */
uint32_t mrf_ring_rkey(struct mrf_passive *passive);
/*
 * The peer uses memory of a device: it keeps its ring for another while. Harmless if it has none.
 */
void mrf_ring_touch(struct mrf_passive *passive);
/* A job is going to use the ring, which is then given back with mrf_ring_put. */
struct mrf_ring *mrf_ring_get(struct mrf_passive *passive);
/* A job has ended. Harmless with NULL. */
void mrf_ring_put(struct mrf_ring *ring);
/* The connection has ended: nobody reaches its ring any more. Harmless if there is none. */
void mrf_ring_leave(struct mrf_passive *passive);

#endif

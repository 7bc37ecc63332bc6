/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receives that all lines to an endpoint share: registered memory in slots of one frame each,
 * posted to one queue (verbs/vsrq.h). A slot is posted from the start; a frame takes it, and it is
 * posted again when the frame has been handled.
 *
 * Slots come MRF_SLOTS_CHUNK at a time. FI_MRFAB_RX_SLOTS says how many there may be; a quarter of
 * the locked memory that the process may have (RLIMIT_MEMLOCK) is the limit, too, but not below
 * one chunk. The agent opens, grows and closes; the rest is guarded by ep->lock.
 */
#ifndef MRF_EP_MSG_SHARED_H
#define MRF_EP_MSG_SHARED_H

#include <stdint.h>
#include "ep/model/line.h"
#include "ep/msg/message.h"
#include "verbs/vmr.h"

struct mrf_vpd;
struct mrf_vsrq;

#define MRF_SLOTS_CHUNK 32
#define MRF_SLOTS_MAX 512

struct mrf_slot {
	struct mrf_message message; /* that came into it, while it has to stay */
	struct mrf_origin *origin;  /* of that message, */
	uint64_t frame;		    /* which is this one of its messages */
	uint8_t *bytes;		    /* MRF_LINE_SLOT of them */
	uint32_t lkey;
	unsigned number;
	uint64_t posting; /* number of its posting, from 1 on; 0: it has come back */
};

struct mrf_slots {
	struct mrf_vpd *pd;
	struct mrf_vsrq *srq; /* NULL: not open */
	unsigned count, max;
	uint64_t postings; /* so far */
	struct mrf_slots_chunk *chunk[MRF_SLOTS_MAX / MRF_SLOTS_CHUNK];
};

/*
 * --- the agent, without ep->lock, which other threads may hold meanwhile. These return the device's
 * errors, or -FI_ENOMEM. ---
 */

/* With the first chunk, all of it posted. */
int mrf_slots_open(struct mrf_slots *slots, struct mrf_vpd *pd);
/* No queue pair uses the queue any more. Harmless if it was never opened. */
void mrf_slots_close(struct mrf_slots *slots);
/* Another queue, for mrf_shared_move. */
int mrf_slots_open_queue(const struct mrf_slots *slots, struct mrf_vsrq **srq);
/* Makes the next chunk, for mrf_shared_add. */
int mrf_slots_make(const struct mrf_slots *slots, struct mrf_slots_chunk **chunk);

/*
 * --- the caller serialises these: ep->lock, once pollers see the slots -----------------
 */

/* Posts all slots of a chunk. count < max. */
void mrf_shared_add(struct mrf_slots *slots, struct mrf_slots_chunk *chunk);
/* Posts one again. Its queue has room for all, so only a lost device refuses it. */
void mrf_shared_post(struct mrf_slots *slots, struct mrf_slot *slot);
/*
 * From now on srq is used, and belongs to the slots. All that have not come back are posted there.
 * Returns the queue before, which no queue pair uses any more: the caller closes it.
 */
struct mrf_vsrq *mrf_shared_move(struct mrf_slots *slots, struct mrf_vsrq *srq);
/* Posts those again that have not come back, and whose number is below this one: lost.h. */
void mrf_shared_post_before(struct mrf_slots *slots, uint64_t posting);
/* The oldest frame of that sender whose slot has come back and is not posted again, or UINT64_MAX. */
uint64_t mrf_shared_oldest(const struct mrf_slots *slots, const struct mrf_origin *origin);
/* How many there are. *oldest: the lowest number of these, if there are any. */
unsigned mrf_shared_out_before(const struct mrf_slots *slots, uint64_t posting, uint64_t *oldest);

/* --- the ids of their work requests, which no connection has ------------------------- */

static inline bool mrf_slots_is_one(uint64_t wr_id)
{
	return wr_id > UINT64_MAX - MRF_SLOTS_MAX;
}

struct mrf_slot *mrf_slots_find(const struct mrf_slots *slots, uint64_t wr_id);

#endif

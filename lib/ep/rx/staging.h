/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Staging memory: registered memory of the host by way of which the bytes of peers go to and from
 * memory of devices. A peer that asks about a region with such memory gets some, and a pair
 * (verbs/vpair.h) when it names its own end of one. Over that it sends what is to be put into the
 * region, and is sent what it reads; its requests say which bytes these are (rx/job_serve.h). No peer
 * has a right to the memory.
 *
 * In each direction there are MRF_PROTO_STAGES places of MRF_PROTO_STAGE bytes, used in turn: a place
 * for what comes is posted again when the request for it is done, and one for what goes is free when
 * the peer has it.
 *
 * There are MRF_STAGINGS at a time, and MRF_STAGINGS_PER_ADDR of them may be of peers at one address. A
 * peer that has asked for nothing for MRF_STAGING_MS, or for MRF_STAGING_GRACE_MS while another one
 * needs such memory, loses its connection, and with it the memory: it may have stopped for good. The
 * time runs, too, while the connection is broken or takes in no answers, or while bytes are awaited
 * from the peer, and only stands still while the target is at one of its requests. A peer that lives
 * connects again when it has something to do. Agent thread.
 */
#ifndef MRF_EP_RX_STAGING_H
#define MRF_EP_RX_STAGING_H

#include "ep/link/passive.h"
#include "loop/agent_cq.h"
#include "verbs/vpair.h"

/* In the ids of work requests over the pair; those of the connection are below or above. */
#define MRF_STAGING_IN 0x40u
#define MRF_STAGING_OUT 0x41u

_Static_assert(MRF_PASSIVE_SLOTS <= MRF_STAGING_IN, "slots have other numbers");

struct mrf_staging {
	unsigned holds; /* the connection, and the job that is at one of its requests */
	uint8_t *memory;
	bool kept;	   /* by the kernel, so that memory cannot be freed */
	struct mrf_vmr mr; /* gone when the connection is, and so is all that follows */
	struct mrf_passive *passive;
	struct mrf_list node; /* in mrf_eps.stagings, where the one used last is at the end */
	int64_t used;	      /* ms */
	struct mrf_vpair *pair;
	struct mrf_agent_cq *cq; /* the quiet queue that its work completes in */
	bool waits;		 /* a request waits for what comes, or for a place */
	/* what has come, and how many requests had theirs; they only go up, as the next two */
	unsigned came, taken;
	unsigned given, posted, sent;	    /* what is to go, was posted, and has gone */
	uint32_t len[MRF_PROTO_STAGES];	    /* of what has come, */
	uint32_t out_len[MRF_PROTO_STAGES]; /* and of what goes */
};

/* The memory is made when there is none yet. False: there is no room for it. */
bool mrf_staging_has(struct mrf_passive *passive);
/*
 * The peer uses memory of a device: it keeps what it has for another while. Harmless if that is
 * nothing.
 */
void mrf_staging_touch(struct mrf_passive *passive);
/*
 * Makes the pair, of which the peer has this end; *name is ours. Returns the device's errors;
 * -FI_ECONNABORTED: the connection has ended.
 */
int mrf_staging_open(struct mrf_passive *passive, const struct mrf_vpair_name *other,
		     struct mrf_vpair_name *name);
/* Something has come or gone, in the order of requests: slot says which. */
void mrf_staging_completed(struct mrf_passive *passive, unsigned slot, const struct mrf_wc *wc);
/* Has what the next request puts come, or is there a place for what it brings? Else it waits. */
bool mrf_staging_ready(struct mrf_staging *staging, bool put);
/* Where the bytes of the i-th PUT are, or those of another are to be. */
static inline uint8_t *mrf_staging_place(const struct mrf_staging *staging, bool put, unsigned i)
{
	return staging->memory +
	       (i % MRF_PROTO_STAGES + (put ? 0 : MRF_PROTO_STAGES)) * MRF_PROTO_STAGE;
}

/*
 * A request is over: the place of what it put is for others, or len bytes (0: none, it has failed) are
 * to go to the peer. -FI_ECONNABORTED: the connection has ended.
 */
int mrf_staging_take(struct mrf_staging *staging);
int mrf_staging_give(struct mrf_staging *staging, uint64_t len);
/*
 * Posts the first of what is to go, when the job of the next requests has begun: so the device is
 * busy meanwhile. -FI_ECONNABORTED: as before. Harmless if there is nothing.
 */
int mrf_staging_push(struct mrf_staging *staging);
/* Is anything to go that was not posted? */
static inline bool mrf_staging_owes(const struct mrf_staging *staging)
{
	return staging->pair && staging->posted != staging->given;
}

/* A job is going to use the memory, which is then given back with mrf_staging_put. */
struct mrf_staging *mrf_staging_get(struct mrf_passive *passive);
/* A job has ended. Harmless with NULL. */
void mrf_staging_put(struct mrf_staging *staging);
/* The connection ends: nothing comes or goes any more. Harmless if there is none. */
void mrf_staging_leave(struct mrf_passive *passive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of requests that is being served. What cannot be done at once keeps it: it is
 * carried on in a later turn of its connection, or by a job (loop/job.h), and the replies to
 * the whole message go out when the last request is done. A connection has one at a time, so its
 * requests stay in order and it has at most one job. If the connection ends meanwhile, the job is
 * finished for nobody.
 *
 * Agent thread, except where a job is at it: that may use job, gone, hold, err and counts.
 */
#ifndef MRF_EP_RX_WORK_H
#define MRF_EP_RX_WORK_H

#include "ep/link/passive.h"
#include "loop/job.h"
#include "mr/serve.h"

/* What serving a request returns, beside 0 (it is done) and errors. */
enum mrf_serve {
	MRF_SERVE_LATER = 1, /* call again when it is the connection's turn again */
	MRF_SERVE_JOB,	     /* work->job has been started: call again when it is over */
	MRF_SERVE_BEHIND     /* it waits for another work's job, or for bytes: call again then */
};

/* A copy that requests of type BYTES or STAGE ask for. Those that stand together are one job. */
struct mrf_part {
	struct mrf_mr_hold hold;
	uint8_t *host; /* where the job goes on */
	bool put;
	bool done;	   /* unless err is set */
	unsigned requests; /* so many, about adjacent bytes, have not been told of it */
	bool counts;	   /* as that of struct mrf_work, likewise event */
	uint32_t event;
	int err;
};

struct mrf_work {
	/* in mrf_eps.works while it is spare, in orphans, or in another one's list behind */
	struct mrf_list node;
	struct mrf_passive *passive; /* NULL: the connection is gone */
	unsigned slot;		     /* the message: of the connection, */
	size_t len;		     /* its length, */
	size_t at;		     /* and where the request begins whose turn it is */
	bool begun;		     /* reply tells what of that request has been done */
	struct mrf_reply reply;
	unsigned swaps; /* and copies by the device, of this turn */
	size_t used;	/* bytes of replies, */
	size_t meant;	/* and how many there would be if each had its full length */
	struct mrf_job job;
	bool running;		/* job has been started and is not over */
	struct mrf_list behind; /* struct mrf_work.node: of requests that wait for this job */
	atomic_bool gone;	/* nobody waits for it any more */
	bool flushed;		/* err is the result of a job for the request */
	struct mrf_mr_hold hold;
	int err;		     /* of the job: FI_E* */
	struct mrf_staging *staging; /* held while a job is at it */
	bool names;		     /* a STAGE request that names a pair, and does nothing else */
	uint32_t event;		     /* number of the region */
	bool counts;		     /* unless err is set, it is a write that the region counts */
	/* of an ATOMIC request about memory of a device, for its job */
	uint32_t what;
	uint64_t bytes;
	uint8_t *results; /* in replies; NULL: none come back */
	bool stored;
	uint8_t body[MRF_PROTO_REQUEST_BODY];
	/* that a job has done or is at, from the one on whose turn it is; told: of these */
	struct mrf_part parts[MRF_REQUESTS];
	unsigned nparts, told;
	/* A body may be written before its length is known. */
	uint8_t replies[2 * MRF_PROTO_MAX_REPLY];
};

/* Where the body of the reply goes. */
static inline uint8_t *mrf_work_body(struct mrf_work *work)
{
	return work->replies + work->used + MRF_PROTO_REPLY_HEAD;
}

/* How long the reply to a request may be. The bytes of STAGE go another way. */
static inline size_t mrf_work_reply(const struct mrf_request *request)
{
	if (mrf_request_kind(request->type) == MRF_REQUEST_STAGE)
		return MRF_PROTO_REPLY_HEAD + MRF_PROTO_PAIR_NAME;
	return MRF_PROTO_REPLY_HEAD + mrf_min(request->len, MRF_PROTO_MAX_REPLY);
}

#endif

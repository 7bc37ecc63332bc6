/* SPDX-License-Identifier: BSD-2-Clause */
/* What the jobs (loop/job.h) of requests have in common: regions, and how they begin. Agent thread. */
#ifndef MRF_EP_RX_JOB_HOLD_H
#define MRF_EP_RX_JOB_HOLD_H

#include "ep/rx/work.h"

/* What is to be done with these bytes of that region, as a question to lib/mr. */
struct mrf_mr_query mrf_job_query(const struct mrf_work *work, const struct mrf_request *request);
/* The bytes cannot be used: 0, and the reply says why. */
int mrf_job_refuse(struct mrf_work *work, enum mrf_mr_status status);
/*
 * Starts the job, which holds work->hold until it is over: MRF_SERVE_JOB. 0: there is no thread
 * for it; work->err says so, and work->hold has ended.
 */
int mrf_job_start(struct mrf_work *work, bool (*part)(struct mrf_job *job));
/*
 * Holds the bytes of memory of a device that the request is about, in work->hold, if peers have this
 * right: true. False: *ret is what serving it is to return, and reply says why.
 */
bool mrf_job_hold(struct mrf_work *work, const struct mrf_request *request, uint64_t right,
		  int *ret);
/*
 * A job of a connection that has ended and that works on the same region as work->hold; NULL: there
 * is none. It writes what was asked for earlier, which must not land after what is asked for now.
 */
struct mrf_work *mrf_job_late(const struct mrf_work *work);
/* Its initiator says that the operation is done with these bytes: does that count here? */
bool mrf_job_counts(const struct mrf_work *work, bool last);

#endif

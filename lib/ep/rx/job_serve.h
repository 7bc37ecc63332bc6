/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that jobs do (loop/job.h), because storage or a device may take any time: the target's
 * half of FI_COMMIT_COMPLETE, copies between staging memory (rx/staging.h) and a region with
 * memory of a device, and atomic operations on such memory.
 *
 * For these a job gets the elements, changes them, and puts them back, one such job of the process
 * at a time. So they are atomic with each other, but neither with what the device does itself nor
 * with reads and writes of peers. Agent thread.
 */
#ifndef MRF_EP_RX_JOB_SERVE_H
#define MRF_EP_RX_JOB_SERVE_H

#include "ep/rx/work.h"

/*
 * As mrf_atomic_serve, for a request of type FLUSH or STAGE, or of type ATOMIC with
 * MRF_ATOMIC_WHAT_STAGED. work->job.over is the caller's.
 */
int mrf_job_serve(struct mrf_work *work, const struct mrf_request *request);
#endif

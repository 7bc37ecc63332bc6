/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/model/atomic.h"
#include "ep/rx/atomic_serve.h"
#include "ep/rx/stage_atomic.h"
#include "ep/rx/stage_serve.h"

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* --- in a thread of the crew ------------------------------------------------------------------- */

/* All of the bytes, from the region or (in) to it. */
static int copy_elements(const struct mrf_work *work, bool in, uint8_t *bytes)
{
	struct mrf_mr_places places = work->places;
	struct mrf_hmem_why why = { .text = "" };
	int err;

	while (mrf_mr_stage_copy(&places, in, &bytes, &err, &why))
		;
	if (err && err != FI_ECANCELED)
		mrf_warn(FI_LOG_EP_DATA, 4168,
			 "a peer's atomic operation on memory of a device fails: %s", why.text);
	return err;
}

/* Returns whether something has to be stored; bytes: what is there, and then what is to be there. */
static bool apply_all(const struct mrf_work *work, uint8_t *bytes)
{
	unsigned datatype = MRF_ATOMIC_WHAT_DATATYPE(work->what);
	bool compare = MRF_ATOMIC_WHAT_FAMILY(work->what) == MRF_ATOMIC_COMPARE, stored = false;
	size_t size = mrf_atomic_size(datatype), i;
	uint8_t old[MRF_ATOMIC_MAX_SIZE];

	for (i = 0; i < work->bytes; i += size) {
		memcpy(old, bytes + i, size);
		stored |= mrf_atomic_apply(
			datatype, MRF_ATOMIC_WHAT_OP(work->what), old, work->body + i,
			compare ? work->body + work->bytes + i : NULL, bytes + i);
	}
	return stored;
}

static int change_elements(struct mrf_work *work)
{
	uint8_t bytes[MRF_PROTO_REPLY_BODY];
	int err;

	pthread_mutex_lock(&changing);
	err = copy_elements(work, false, bytes);
	if (!err && work->results)
		memcpy(work->results, bytes, work->bytes);
	work->stored = !err && apply_all(work, bytes);
	if (work->stored)
		err = copy_elements(work, true, bytes);
	pthread_mutex_unlock(&changing);
	return err;
}

static bool change_by_job(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);

	work->err = change_elements(work);
	work->counts &= work->stored || work->what & MRF_ATOMIC_WHAT_STORED;
	return false;
}

/* --- the agent ---------------------------------------------------------------------------- */

/* The message may be gone when the job looks at it. */
static int start_change(struct mrf_ep *ep, const struct mrf_request *request, uint8_t *body,
			struct mrf_work *work)
{
	bool fetches = MRF_ATOMIC_WHAT_FAMILY(request->what) != MRF_ATOMIC_BASE;

	work->what = request->what;
	work->counts = work->what & MRF_ATOMIC_WHAT_COUNT && work->event && ep->caps & FI_RMA_EVENT;
	work->bytes = request->len;
	work->results = fetches ? body : NULL;
	memcpy(work->body, request->body, request->body_len);
	return mrf_work_start(ep, work, change_by_job);
}

static void tell_result(const struct mrf_request *request, struct mrf_reply *reply,
			const struct mrf_work *work)
{
	mrf_work_tell(work, request, reply);
	if (work->err)
		return;
	reply->body_len = work->results ? (uint32_t)request->len : 0;
	reply->flags = work->stored ? MRF_REPLY_STORED : 0;
}

int mrf_stage_atomic_serve(struct mrf_ep *ep, const struct mrf_request *request,
			   struct mrf_reply *reply, uint8_t *body, struct mrf_work *work)
{
	int ret;

	if (!work->flushed) {
		if (!mrf_atomic_understood(request))
			return -FI_EINVAL;
		if (!ep->domain->space.atomics) {
			mrf_work_refuse(reply, MRF_MR_NO_RIGHT);
			return 0;
		}
		if (!mrf_stage_hold(ep, request, FI_REMOTE_WRITE, work, reply, &ret))
			return ret;
	}
	work->flushed = !work->flushed && start_change(ep, request, body, work) == MRF_SERVE_JOB;
	if (work->flushed)
		return MRF_SERVE_JOB;
	tell_result(request, reply, work);
	return 0;
}

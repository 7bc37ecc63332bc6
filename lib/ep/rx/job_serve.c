/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the target flushes by msync(2) and not by the device: ep/tx/commit.c. */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/renew.h"
#include "ep/model/atomics.h"
#include "ep/rx/atomic_serve.h"
#include "ep/rx/job_hold.h"
#include "ep/rx/job_serve.h"
#include "ep/rx/device_parts.h"
#include "ep/rx/staging.h"

/* --- what all of them do ------------------------------------------------------------------- */

static struct mrf_work *work_of(struct mrf_job *job)
{
	return mrf_container_of(job, struct mrf_work, job);
}

/* --- flushes ------------------------------------------------------------------------------- */

/* In a thread of the crew. */
static bool flush_part(struct mrf_job *job)
{
	struct mrf_work *work = work_of(job);

	return mrf_mr_commit_flush(&work->hold, &work->err) && !atomic_load(&work->gone);
}

static int begin_flush(struct mrf_work *work, const struct mrf_request *request)
{
	const struct mrf_mr_query query = mrf_job_query(work, request);
	enum mrf_mr_status status;

	if (!request->len || request->what > MRF_FLUSH_DO)
		return -FI_EINVAL;
	status = mrf_mr_commit_begin(&work->passive->ep->domain->space, &query, &work->hold);
	if (status != MRF_MR_OK)
		return mrf_job_refuse(work, status);
	if (request->what != MRF_FLUSH_CHECK)
		return mrf_job_start(work, flush_part);
	work->err = mrf_mr_commit_check(&work->hold);
	mrf_mr_hold_end(&work->hold);
	return 0;
}

/* --- atomic operations on memory of devices ---------------------------------------------------------------- */

static struct mrf_static_lock changing = MRF_STATIC_LOCK(NULL);

/* All of the bytes, from the region or (in) to it; in a thread of the crew, as what follows. */
static int copy_elements(const struct mrf_work *work, bool in, uint8_t *bytes)
{
	struct mrf_mr_hold hold = work->hold;
	struct mrf_hmem_why why = { .text = "" };
	int err;

	while (mrf_mr_stage_copy(&hold, in, &bytes, &err, &why))
		;
	if (err && err != FI_ECANCELED)
		mrf_warn(FI_LOG_EP_DATA, 4168,
			 "a peer's atomic operation on device memory fails: %s", why.text);
	return err;
}

/* After an error other than FI_ECANCELED some of them may be there, which FI_EIO says. */
static int store_elements(const struct mrf_work *work, uint8_t *bytes)
{
	int err = copy_elements(work, true, bytes);

	return err && err != FI_ECANCELED ? FI_EIO : err;
}

/*
 * Returns whether something has to be stored; bytes: what is there, and then what is to be there.
 */
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

static bool change_elements(struct mrf_job *job)
{
	struct mrf_work *work = work_of(job);
	uint8_t bytes[MRF_PROTO_REPLY_BODY];

	mrf_static_take(&changing);
	work->err = copy_elements(work, false, bytes);
	if (!work->err && work->results)
		memcpy(work->results, bytes, work->bytes);
	work->stored = !work->err && apply_all(work, bytes);
	if (work->stored)
		work->err = store_elements(work, bytes);
	mrf_static_release(&changing);
	work->counts &= work->stored || work->what & MRF_ATOMIC_WHAT_STORED;
	return false;
}

/* The message may be gone when the job looks at it. */
static int begin_atomic(struct mrf_work *work, const struct mrf_request *request)
{
	bool fetches = MRF_ATOMIC_WHAT_FAMILY(request->what) != MRF_ATOMIC_BASE;
	const struct mrf_ep *ep = work->passive->ep;
	int ret;

	if (!mrf_atomic_understood(request))
		return -FI_EINVAL;
	if (!ep->domain->space.atomics)
		return mrf_job_refuse(work, MRF_MR_NO_RIGHT);
	if (!mrf_job_hold(work, request, FI_REMOTE_WRITE, &ret))
		return ret;
	work->what = request->what;
	work->counts = mrf_job_counts(work, work->what & MRF_ATOMIC_WHAT_COUNT);
	work->bytes = request->len;
	work->results = fetches ? mrf_work_body(work) : NULL;
	memcpy(work->body, request->body, request->body_len);
	return mrf_job_start(work, change_elements);
}

/* --- serving them -------------------------------------------------------------------------- */

static int begin_job(struct mrf_work *work, const struct mrf_request *request)
{
	switch (mrf_request_kind(request->type)) {
	case MRF_REQUEST_FLUSH:
		return begin_flush(work, request);
	case MRF_REQUEST_STAGE:
	case MRF_REQUEST_BYTES:
		return mrf_parts_begin(work, request);
	case MRF_REQUEST_ATOMIC:
		return begin_atomic(work, request);
	case MRF_REQUEST_SYNC:
	case MRF_NO_REQUEST:
		break;
	}
	return -FI_EINVAL;
}

/*
 * The job is over, or there was none: all bytes are done or, with FI_ECANCELED, nothing was
 * stored, so that the initiator may ask for it again. After other errors some bytes may have been
 * stored: the operation has failed for good.
 */
static void tell_result(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_reply *reply = &work->reply;

	if (work->err == FI_ECANCELED) {
		reply->status = MRF_MR_CLOSED;
		return;
	}
	reply->status = work->err ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	reply->err = (uint32_t)work->err;
	if (work->err)
		return;
	reply->done = request->len;
	reply->body_len = work->results ? (uint32_t)request->len : 0;
	reply->flags = work->stored ? MRF_REPLY_STORED : 0;
}

int mrf_job_serve(struct mrf_work *work, const struct mrf_request *request)
{
	int ret = work->flushed || mrf_parts_are_left(work) ? 0 : begin_job(work, request);

	work->flushed = ret == MRF_SERVE_JOB;
	if (ret)
		return ret;
	if (mrf_parts_are_left(work))
		mrf_parts_take(work, request);
	mrf_staging_put(work->staging);
	work->staging = NULL;
	/* What it waited for is over now, however long that took. */
	mrf_staging_touch(work->passive);
	if (work->reply.status == MRF_REPLY_DONE && !work->names)
		tell_result(work, request);
	return mrf_parts_end(work, request);
}

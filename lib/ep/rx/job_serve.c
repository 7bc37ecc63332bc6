/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the target flushes by msync(2) and not by the device: ep/tx/commit.c. */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/renew.h"
#include "base/thread.h"
#include "ep/model/atomics.h"
#include "ep/rx/atomic_serve.h"
#include "ep/rx/job_serve.h"
#include "ep/rx/ring.h"

/* --- what all of them do ------------------------------------------------------------------- */

static struct mrf_work *work_of(struct mrf_job *job)
{
	return mrf_container_of(job, struct mrf_work, job);
}

/* What is to be done with these bytes of that region, as a question to lib/mr. */
static struct mrf_mr_query query_of(const struct mrf_work *work, const struct mrf_request *request)
{
	return (struct mrf_mr_query){ .key = request->key,
				      .serial = request->serial,
				      .addr = request->addr,
				      .len = request->len,
				      .port = &work->passive->ep->port };
}

/* The bytes cannot be used: 0, and the reply says why. */
static int refuse_bytes(struct mrf_work *work, enum mrf_mr_status status)
{
	work->reply.status = status == MRF_MR_NO_RIGHT ? MRF_REPLY_RIGHT : (uint32_t)status;
	return 0;
}

/*
 * Starts the job, which holds work->hold until it is over: MRF_SERVE_JOB. 0: there is no thread
 * for it; work->err says so, and work->hold has ended.
 */
static int start_job(struct mrf_work *work, bool (*part)(struct mrf_job *job))
{
	int ret;

	work->job.work = part;
	ret = mrf_agent_job(work->passive->ep->agent, MRF_CREW_STORAGE, &work->job);
	work->running = !ret;
	if (!ret)
		return MRF_SERVE_JOB;
	work->err = mrf_thread_err(ret);
	mrf_mr_hold_end(&work->hold);
	return 0;
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
	const struct mrf_mr_query query = query_of(work, request);
	enum mrf_mr_status status;

	if (!request->len || request->what > MRF_FLUSH_DO)
		return -FI_EINVAL;
	status = mrf_mr_commit_begin(&work->passive->ep->domain->space, &query, &work->hold);
	if (status != MRF_MR_OK)
		return refuse_bytes(work, status);
	if (request->what != MRF_FLUSH_CHECK)
		return start_job(work, flush_part);
	work->err = mrf_mr_commit_check(&work->hold);
	mrf_mr_hold_end(&work->hold);
	return 0;
}

/* --- memory of devices --------------------------------------------------------------------- */

static bool holds(const struct mrf_work *work, const struct mrf_mr *mr)
{
	bool held = work->hold.mr == mr;
	unsigned i;

	for (i = 0; i < work->nfew; i++)
		held |= work->few[i].hold.mr == mr;
	return held;
}

/*
 * A job of a connection that has ended and that works on the same region; NULL: there is none. It
 * writes what was asked for earlier, which must not land after what is asked for now.
 */
static struct mrf_work *find_late(const struct mrf_work *work)
{
	mrf_list_each (node, &mrf_eps_of(work->passive->ep->agent)->orphans) {
		struct mrf_work *late = mrf_list_entry(node, struct mrf_work, node);

		if (holds(late, work->hold.mr))
			return late;
	}
	return NULL;
}

/*
 * Holds the bytes that the request is about, in work->hold, if peers have this right: true.
 * False: *ret is what serving it is to return, and reply says why.
 */
static bool hold_bytes(struct mrf_work *work, const struct mrf_request *request, uint64_t right,
		       int *ret)
{
	struct mrf_mr_space *space = &work->passive->ep->domain->space;
	const struct mrf_mr_query query = query_of(work, request);
	enum mrf_mr_status status =
		mrf_mr_stage_begin(space, &query, right, &work->hold, &work->event);
	struct mrf_work *late;

	mrf_ring_touch(work->passive);
	if (status != MRF_MR_OK) {
		*ret = refuse_bytes(work, status);
		return false;
	}
	late = find_late(work);
	if (!late)
		return true;
	mrf_mr_hold_end(&work->hold);
	mrf_list_add_tail(&work->node, &late->behind);
	*ret = MRF_SERVE_BEHIND;
	return false;
}

/* Its initiator says that the operation is done with these bytes: does that count here? */
static bool is_counted(const struct mrf_work *work, bool last)
{
	return last && work->event && mrf_passive_wants_events(work->passive);
}

/* In a thread of the crew. */
static bool copy_next(struct mrf_job *job)
{
	struct mrf_work *work = work_of(job);
	struct mrf_hmem_why why = { .text = "" };

	if (mrf_mr_stage_copy(&work->hold, work->put, &work->host, &work->err, &why) &&
	    !atomic_load(&work->gone))
		return true;
	if (work->err && work->err != FI_ECANCELED)
		mrf_warn(FI_LOG_EP_DATA, 4166, "a peer's %s device memory fails: %s",
			 work->put ? "write to" : "read from", why.text);
	return false;
}

static bool is_in_ring(const struct mrf_passive *passive, const struct mrf_request *request)
{
	uint32_t known = MRF_STAGE_PUT | MRF_STAGE_COUNT | MRF_STAGE_OFFSET;

	return passive->ring && request->len && !(request->what & ~known) &&
	       request->len <= MRF_PROTO_RING - (request->what & MRF_STAGE_OFFSET);
}

static int begin_copy(struct mrf_work *work, const struct mrf_request *request)
{
	int ret;

	if (!is_in_ring(work->passive, request))
		return -FI_EINVAL;
	work->put = request->what & MRF_STAGE_PUT;
	if (!hold_bytes(work, request, work->put ? FI_REMOTE_WRITE : FI_REMOTE_READ, &ret))
		return ret;
	work->counts = is_counted(work, request->what & MRF_STAGE_COUNT);
	work->ring = mrf_ring_get(work->passive);
	work->host = work->ring->memory + (request->what & MRF_STAGE_OFFSET);
	return start_job(work, copy_next);
}

/* --- few bytes of it ------------------------------------------------------------------------ */

static bool is_here(const struct mrf_request *request)
{
	if (!request->len || request->what & ~(MRF_STAGE_PUT | MRF_STAGE_COUNT))
		return false;
	return request->what & MRF_STAGE_PUT ? request->body_len == request->len
					     : request->len <= MRF_PROTO_REPLY_BODY;
}

static uint64_t right_to(const struct mrf_request *request)
{
	return request->what & MRF_STAGE_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

/* In a thread of the crew. What is behind one that fails is not done. */
static bool copy_few(struct mrf_job *job)
{
	struct mrf_work *work = work_of(job);
	struct mrf_hmem_why why = { .text = "" };
	unsigned i;

	for (i = 0; i < work->nfew && !atomic_load(&work->gone); i++) {
		struct mrf_few *few = &work->few[i];

		while (mrf_mr_stage_copy(&few->hold, few->put, &few->host, &few->err, &why))
			;
		few->done = true;
		if (few->err && few->err != FI_ECANCELED)
			mrf_warn(FI_LOG_EP_DATA, 4166, "a peer's %s device memory fails: %s",
				 few->put ? "write to" : "read from", why.text);
		if (few->err)
			break;
	}
	return false;
}

/* How much room the requests of a job take: of their puts' bodies, and of replies. */
struct room {
	size_t bodies, used, meant;
};

/*
 * The request is held in work->hold: it is one more of the job. The bytes of a put move, because the
 * message may be gone when the job looks at it; those of a get go where their reply will be.
 */
static void add_few(struct mrf_work *work, const struct mrf_request *request, struct room *room)
{
	struct mrf_few *few = &work->few[work->nfew++];

	*few = (struct mrf_few){ .hold = work->hold,
				 .put = request->what & MRF_STAGE_PUT,
				 .counts = is_counted(work, request->what & MRF_STAGE_COUNT),
				 .event = work->event };
	work->hold = (struct mrf_mr_hold){ .mr = NULL };
	if (few->put) {
		few->host = work->body + room->bodies;
		memcpy(few->host, request->body, request->len);
		room->bodies += request->len;
	} else {
		few->host = work->replies + room->used + MRF_PROTO_REPLY_HEAD;
		room->used += request->len;
	}
	room->used += MRF_PROTO_REPLY_HEAD;
}

/* May the request be done by the same job? Then it is held. */
static bool joins(struct mrf_work *work, const struct mrf_request *request, struct room *room)
{
	struct mrf_mr_space *space = &work->passive->ep->domain->space;
	struct mrf_mr_query query = query_of(work, request);

	room->meant += MRF_PROTO_REPLY_HEAD + mrf_min(request->len, MRF_PROTO_MAX_REPLY);
	if (mrf_request_kind(request->type) != MRF_REQUEST_BYTES || !is_here(request) ||
	    work->nfew == MRF_REQUESTS || room->meant > MRF_PROTO_MAX_REPLY ||
	    request->number != work->passive->number + work->nfew)
		return false;
	if (mrf_mr_stage_begin(space, &query, right_to(request), &work->hold, &work->event) !=
	    MRF_MR_OK)
		return false;
	if (!find_late(work))
		return true;
	mrf_mr_hold_end(&work->hold);
	return false;
}

/* Those behind the first, as far as they are of this kind. */
static void gather_few(struct mrf_work *work, struct room *room)
{
	const uint8_t *msg = work->passive->slots[work->slot];
	size_t at = work->at + mrf_msg_len(msg + work->at);
	struct mrf_request request;

	while (at < work->len && !mrf_request_decode(msg + at, work->len - at, &request) &&
	       joins(work, &request, room)) {
		add_few(work, &request, room);
		at += mrf_msg_len(msg + at);
	}
}

/* All that they hold ends, because there is no thread for them. */
static void drop_few(struct mrf_work *work)
{
	while (work->nfew)
		mrf_mr_hold_end(&work->few[--work->nfew].hold);
}

static int begin_few(struct mrf_work *work, const struct mrf_request *request)
{
	struct room room = { .used = work->used, .meant = work->meant };
	int ret;

	if (!is_here(request))
		return -FI_EINVAL;
	if (!hold_bytes(work, request, right_to(request), &ret))
		return ret;
	work->nfew = work->told = 0;
	add_few(work, request, &room);
	gather_few(work, &room);
	ret = start_job(work, copy_few);
	if (!ret)
		drop_few(work);
	return ret;
}

/* What became of the next one that the job has done. */
static void take_few(struct mrf_work *work)
{
	const struct mrf_few *few = &work->few[work->told++];

	work->err = few->done ? few->err : FI_ECANCELED;
	work->results = few->put ? NULL : mrf_work_body(work);
}

/* --- atomic operations on it ---------------------------------------------------------------- */

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
		return refuse_bytes(work, MRF_MR_NO_RIGHT);
	if (!hold_bytes(work, request, FI_REMOTE_WRITE, &ret))
		return ret;
	work->what = request->what;
	work->counts = is_counted(work, work->what & MRF_ATOMIC_WHAT_COUNT);
	work->bytes = request->len;
	work->results = fetches ? mrf_work_body(work) : NULL;
	memcpy(work->body, request->body, request->body_len);
	return start_job(work, change_elements);
}

/* --- serving them -------------------------------------------------------------------------- */

static int begin_job(struct mrf_work *work, const struct mrf_request *request)
{
	switch (mrf_request_kind(request->type)) {
	case MRF_REQUEST_FLUSH:
		return begin_flush(work, request);
	case MRF_REQUEST_STAGE:
		return begin_copy(work, request);
	case MRF_REQUEST_BYTES:
		return begin_few(work, request);
	case MRF_REQUEST_ATOMIC:
		return begin_atomic(work, request);
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
	int ret = work->flushed || work->told < work->nfew ? 0 : begin_job(work, request);

	work->flushed = ret == MRF_SERVE_JOB;
	if (ret)
		return ret;
	if (work->told < work->nfew)
		take_few(work);
	mrf_ring_put(work->ring);
	work->ring = NULL;
	/* What it waited for is over now, however long that took. */
	mrf_ring_touch(work->passive);
	if (work->reply.status == MRF_REPLY_DONE)
		tell_result(work, request);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/rx/stage_serve.h"

/* In a thread of the crew. */
static bool copy_next(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);
	struct mrf_hmem_why why = { .text = "" };

	if (mrf_mr_stage_copy(&work->places, work->put, &work->host, &work->err, &why) &&
	    !atomic_load(&work->gone))
		return true;
	if (work->err && work->err != FI_ECANCELED)
		mrf_warn(FI_LOG_EP_DATA, 4166, "a peer's %s memory of a device fails: %s",
			 work->put ? "write to" : "read from", why.text);
	return false;
}

bool mrf_stage_hold(struct mrf_ep *ep, const struct mrf_request *request, uint64_t right,
		    struct mrf_work *work, struct mrf_reply *reply, int *ret)
{
	const struct mrf_mr_ask ask = mrf_work_ask(ep, request);
	enum mrf_mr_status status =
		mrf_mr_stage_begin(&ep->domain->space, &ask, right, &work->places, &work->event);

	*ret = 0;
	mrf_ring_touch(work->passive);
	if (status != MRF_MR_OK) {
		mrf_work_refuse(reply, status);
		return false;
	}
	if (!mrf_work_is_early(work))
		return true;
	mrf_mr_places_end(&work->places);
	*ret = MRF_SERVE_LATER;
	return false;
}

static int start_copy(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_work *work)
{
	work->counts = request->what & MRF_STAGE_COUNT && work->event;
	work->ring = mrf_ring_get(work->passive);
	work->host = work->ring->memory + (request->what & MRF_STAGE_OFFSET);
	return mrf_work_start(ep, work, copy_next);
}

static bool is_in_ring(const struct mrf_passive *passive, const struct mrf_request *request)
{
	uint32_t known = MRF_STAGE_PUT | MRF_STAGE_COUNT | MRF_STAGE_OFFSET;

	return passive->ring && request->len && !(request->what & ~known) &&
	       request->len <= MRF_PROTO_RING - (request->what & MRF_STAGE_OFFSET);
}

int mrf_stage_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		    struct mrf_work *work)
{
	uint64_t right = request->what & MRF_STAGE_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	int ret;

	if (!work->flushed) {
		if (!is_in_ring(work->passive, request))
			return -FI_EINVAL;
		work->put = right == FI_REMOTE_WRITE;
		if (!mrf_stage_hold(ep, request, right, work, reply, &ret))
			return ret;
	}
	work->flushed = !work->flushed && start_copy(ep, request, work) == MRF_SERVE_JOB;
	if (work->flushed)
		return MRF_SERVE_JOB;
	mrf_ring_put(work->ring);
	work->ring = NULL;
	mrf_work_tell(work, request, reply);
	return 0;
}

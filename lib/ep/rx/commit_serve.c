/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the target flushes by msync(2) and not by the device: ep/tx/commit.c. */
#include <rdma/fi_errno.h>
#include "ep/rx/commit_serve.h"

/* In a thread of the crew. */
static bool flush_part(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);

	return mrf_mr_commit_flush(&work->places, &work->err) && !atomic_load(&work->gone);
}

static enum mrf_mr_status find_places(struct mrf_ep *ep, const struct mrf_request *request,
				      struct mrf_mr_places *places)
{
	const struct mrf_mr_ask ask = mrf_work_ask(ep, request);

	return mrf_mr_commit_begin(&ep->domain->space, &ask, places);
}

/* MRF_SERVE_JOB, or 0 with the result in work->err. */
static int start_commit(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_work *work)
{
	if (request->what != MRF_FLUSH_CHECK)
		return mrf_work_start(ep, work, flush_part);
	work->err = mrf_mr_commit_check(&work->places);
	mrf_mr_places_end(&work->places);
	return 0;
}

int mrf_commit_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		     uint8_t *body, struct mrf_work *work)
{
	enum mrf_mr_status status = MRF_MR_OK;

	(void)body;
	if (!request->len || request->what > MRF_FLUSH_DO)
		return -FI_EINVAL;
	if (!work->flushed)
		status = find_places(ep, request, &work->places);
	if (status != MRF_MR_OK) {
		mrf_work_refuse(reply, status);
		return 0;
	}
	work->flushed = !work->flushed && start_commit(ep, request, work) == MRF_SERVE_JOB;
	if (work->flushed)
		return MRF_SERVE_JOB;
	mrf_work_tell(work, request, reply);
	return 0;
}

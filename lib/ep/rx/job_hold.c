/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"
#include "ep/rx/job_hold.h"
#include "ep/rx/staging.h"

struct mrf_mr_query mrf_job_query(const struct mrf_work *work, const struct mrf_request *request)
{
	return (struct mrf_mr_query){ .key = request->key,
				      .serial = request->serial,
				      .addr = request->addr,
				      .len = request->len,
				      .port = &work->passive->ep->port };
}

int mrf_job_refuse(struct mrf_work *work, enum mrf_mr_status status)
{
	work->reply.status = status == MRF_MR_NO_RIGHT ? MRF_REPLY_RIGHT : (uint32_t)status;
	return 0;
}

int mrf_job_start(struct mrf_work *work, bool (*part)(struct mrf_job *job))
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

/* --- regions ------------------------------------------------------------------------------- */

static bool holds(const struct mrf_work *work, const struct mrf_mr *mr)
{
	bool held = work->hold.mr == mr;
	unsigned i;

	for (i = 0; i < work->nparts; i++)
		held |= work->parts[i].hold.mr == mr;
	return held;
}

struct mrf_work *mrf_job_late(const struct mrf_work *work)
{
	mrf_list_each (node, &mrf_eps_of(work->passive->ep->agent)->orphans) {
		struct mrf_work *late = mrf_list_entry(node, struct mrf_work, node);

		if (holds(late, work->hold.mr))
			return late;
	}
	return NULL;
}

bool mrf_job_hold(struct mrf_work *work, const struct mrf_request *request, uint64_t right,
		  int *ret)
{
	struct mrf_mr_space *space = &work->passive->ep->domain->space;
	const struct mrf_mr_query query = mrf_job_query(work, request);
	enum mrf_mr_status status =
		mrf_mr_stage_begin(space, &query, right, &work->hold, &work->event);
	struct mrf_work *late;

	mrf_staging_touch(work->passive);
	if (status != MRF_MR_OK) {
		*ret = mrf_job_refuse(work, status);
		return false;
	}
	late = mrf_job_late(work);
	if (!late)
		return true;
	mrf_mr_hold_end(&work->hold);
	mrf_list_add_tail(&work->node, &late->behind);
	*ret = MRF_SERVE_BEHIND;
	return false;
}

bool mrf_job_counts(const struct mrf_work *work, bool last)
{
	return last && work->event && mrf_passive_wants_events(work->passive);
}

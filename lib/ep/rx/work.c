/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/thread.h"
#include "ep/rx/work.h"
#include "mr/event.h"

struct mrf_mr_ask mrf_work_ask(const struct mrf_ep *ep, const struct mrf_request *request)
{
	return (struct mrf_mr_ask){ .key = request->key,
				    .serial = request->serial,
				    .addr = request->addr,
				    .len = request->len,
				    .port = &ep->port };
}

void mrf_work_refuse(struct mrf_reply *reply, enum mrf_mr_status status)
{
	reply->status = status == MRF_MR_NO_RIGHT ? MRF_REPLY_RIGHT : (uint32_t)status;
}

int mrf_work_start(struct mrf_ep *ep, struct mrf_work *work, bool (*part)(struct mrf_job *job))
{
	int ret;

	work->job.work = part;
	ret = mrf_agent_job(ep->agent, MRF_CREW_STORAGE, &work->job);
	if (!ret)
		return MRF_SERVE_JOB;
	work->err = mrf_thread_err(ret);
	mrf_mr_places_end(&work->places);
	return 0;
}

void mrf_work_leave(struct mrf_work *work)
{
	struct mrf_ep *ep = work->passive ? work->passive->ep : NULL;

	if (ep && work->counts && !work->err)
		mrf_mr_event(&ep->domain->space, work->event, &ep->port);
	mrf_mr_places_end(&work->places);
}

void mrf_work_tell(const struct mrf_work *work, const struct mrf_request *request,
		   struct mrf_reply *reply)
{
	if (work->err == FI_ECANCELED) {
		reply->status = MRF_MR_CLOSED;
		return;
	}
	reply->status = work->err ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	reply->err = (uint32_t)work->err;
	reply->done = work->err ? 0 : request->len;
}

bool mrf_work_is_early(const struct mrf_work *work)
{
	mrf_list_each (node, &mrf_eps_of(work->passive->ep->agent)->orphans) {
		if (mrf_list_entry(node, struct mrf_work, node)->places.mr == work->places.mr)
			return true;
	}
	return false;
}

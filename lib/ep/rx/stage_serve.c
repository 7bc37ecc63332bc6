/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
#include "base/thread.h"
#include "ep/rx/stage_serve.h"
#include "mr/demand/backs.h"

_Static_assert(MRF_STAGE_OFFSET == MRF_PROTO_RING - 1, "every offset of a ring can be named");

/* --- rings ------------------------------------------------------------------------------- */

static struct mrf_ring *peer_ring_new(const struct mrf_ep *ep)
{
	const struct mrf_mr_space *space = &ep->domain->space;
	struct mrf_ring *ring = calloc(1, sizeof(*ring));
	void *memory;

	if (!ring)
		return NULL;
	if (posix_memalign(&memory, mrf_page_size(), MRF_PROTO_RING))
		goto err_free;
	/* The peer may read all of it. */
	memset(memory, 0, MRF_PROTO_RING);
	ring->memory = memory;
	ring->holds = 1;
	if (!mrf_room_reg(mrf_mr_port_pd(space, &ep->port), memory, MRF_PROTO_RING, 0,
			  MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_READ | MRF_RIGHT_REMOTE_WRITE,
			  &ring->mr))
		return ring;
	free(memory);

err_free:
	free(ring);
	return NULL;
}

uint32_t mrf_ring_rkey(struct mrf_passive *passive)
{
	struct mrf_eps *eps = mrf_eps_of(passive->ep->agent);

	if (!passive->ring && eps->rings < MRF_STAGE_PEERS) {
		passive->ring = peer_ring_new(passive->ep);
		eps->rings += passive->ring != NULL;
	}
	return passive->ring ? passive->ring->mr.rkey : 0;
}

void mrf_ring_put(struct mrf_ring *ring)
{
	if (!ring || --ring->holds)
		return;
	free(ring->memory);
	free(ring);
}

void mrf_ring_leave(struct mrf_passive *passive)
{
	if (!passive->ring)
		return;
	mrf_vmr_drop(&passive->ring->mr);
	mrf_ring_put(passive->ring);
	passive->ring = NULL;
	mrf_eps_of(passive->ep->agent)->rings--;
}

/* --- requests ------------------------------------------------------------------------------ */

/* In a thread of the crew. The region is free before anybody hears of it. */
static bool copy_next(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);
	struct mrf_hmem_why why = { .text = "" };

	if (mrf_mr_stage_copy(&work->commit, work->put, &work->host, &work->err, &why) &&
	    !atomic_load(&work->gone))
		return true;
	if (work->err && work->err != FI_ECANCELED)
		mrf_warn(FI_LOG_EP_DATA, 4166, "a peer's %s memory of a device fails: %s",
			 work->put ? "write to" : "read from", why.text);
	mrf_mr_commit_end(&work->commit);
	return false;
}

static enum mrf_mr_status find_bytes(struct mrf_ep *ep, const struct mrf_request *request,
				     struct mrf_work *work)
{
	struct mrf_mr_ask ask = { .key = request->key,
				  .serial = request->serial,
				  .addr = request->addr,
				  .len = request->len,
				  .port = &ep->port };

	return mrf_mr_stage_begin(&ep->domain->space, &ask,
				  work->put ? FI_REMOTE_WRITE : FI_REMOTE_READ, &work->commit,
				  &work->event);
}

/* MRF_SERVE_JOB, or 0 with the result in work->err. */
static int start_copy(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_work *work)
{
	int ret;

	work->ring = work->passive->ring;
	work->ring->holds++;
	work->host = work->ring->memory + (request->what & MRF_STAGE_OFFSET);
	work->job.work = copy_next;
	ret = mrf_agent_job(ep->agent, MRF_CREW_STORAGE, &work->job);
	if (!ret)
		return MRF_SERVE_JOB;
	work->err = mrf_thread_err(ret);
	mrf_mr_commit_end(&work->commit);
	return 0;
}

/* The bytes are there, or why not. */
static void tell(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		 const struct mrf_work *work)
{
	if (work->err == FI_ECANCELED) {
		reply->status = MRF_MR_CLOSED;
		return;
	}
	reply->status = work->err ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	reply->err = (uint32_t)work->err;
	reply->done = work->err ? 0 : request->len;
	if (!work->err && request->what & MRF_STAGE_COUNT && work->event)
		mrf_mr_event(&ep->domain->space, work->event, &ep->port);
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
	enum mrf_mr_status status = MRF_MR_OK;

	if (!work->flushed && !is_in_ring(work->passive, request))
		return -FI_EINVAL;
	work->put = request->what & MRF_STAGE_PUT;
	if (!work->flushed)
		status = find_bytes(ep, request, work);
	if (status != MRF_MR_OK) {
		reply->status = status == MRF_MR_NO_RIGHT ? MRF_REPLY_RIGHT : (uint32_t)status;
		return 0;
	}
	if (!work->flushed && mrf_work_is_early(work)) {
		mrf_mr_commit_end(&work->commit);
		return MRF_SERVE_LATER;
	}
	work->flushed = !work->flushed && start_copy(ep, request, work) == MRF_SERVE_JOB;
	if (work->flushed)
		return MRF_SERVE_JOB;
	mrf_ring_put(work->ring);
	work->ring = NULL;
	tell(ep, request, reply, work);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
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

bool mrf_stage_hold(struct mrf_ep *ep, const struct mrf_request *request, uint64_t right,
		    struct mrf_work *work, struct mrf_reply *reply, int *ret)
{
	const struct mrf_mr_ask ask = mrf_work_ask(ep, request);
	enum mrf_mr_status status =
		mrf_mr_stage_begin(&ep->domain->space, &ask, right, &work->commit, &work->event);

	*ret = 0;
	if (status != MRF_MR_OK) {
		mrf_work_refuse(reply, status);
		return false;
	}
	if (!mrf_work_is_early(work))
		return true;
	mrf_mr_commit_end(&work->commit);
	*ret = MRF_SERVE_LATER;
	return false;
}

static int start_copy(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_work *work)
{
	work->ring = work->passive->ring;
	work->ring->holds++;
	work->host = work->ring->memory + (request->what & MRF_STAGE_OFFSET);
	return mrf_work_start(ep, work, copy_next);
}

static bool is_in_ring(const struct mrf_passive *passive, const struct mrf_request *request)
{
	uint32_t known = MRF_STAGE_PUT | MRF_STAGE_COUNT | MRF_STAGE_OFFSET;

	return passive->ring && request->len && !(request->what & ~known) &&
	       request->len <= MRF_PROTO_RING - (request->what & MRF_STAGE_OFFSET);
}

static void count_write(struct mrf_ep *ep, const struct mrf_request *request,
			const struct mrf_work *work)
{
	if (!work->err && request->what & MRF_STAGE_COUNT && work->event)
		mrf_mr_event(&ep->domain->space, work->event, &ep->port);
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
	count_write(ep, request, work);
	return 0;
}

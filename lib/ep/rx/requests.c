/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "ep/model/atomics.h"
#include "ep/rx/atomic_serve.h"
#include "ep/rx/job_serve.h"
#include "ep/rx/device_parts.h"
#include "ep/rx/requests.h"
#include "ep/rx/staging.h"
#include "mr/event.h"

/* --- what they are served in ------------------------------------------------------------- */

/*
 * Counts what the job wrote, while the region still has its counters, and lets go of the region
 * before anybody hears of it. Without a connection nobody is told, and nothing counts.
 */
static void let_go_of_region(struct mrf_work *work)
{
	struct mrf_ep *ep = work->passive ? work->passive->ep : NULL;
	unsigned i;

	if (ep && work->counts && !work->err)
		mrf_mr_event(&ep->domain->space, work->event, &ep->port);
	mrf_mr_hold_end(&work->hold);
	for (i = 0; i < work->nparts; i++) {
		struct mrf_part *part = &work->parts[i];

		if (ep && part->counts && part->done && !part->err)
			mrf_mr_event(&ep->domain->space, part->event, &ep->port);
		part->counts = false;
		mrf_mr_hold_end(&part->hold);
	}
}

/* What it waited for is over: its connection gets turns again. */
static void go_on(struct mrf_passive *passive)
{
	passive->away = false;
	mrf_passive_take_place(passive);
}

static void work_free(struct mrf_work *work)
{
	mrf_list_del(&work->node);
	mrf_staging_put(work->staging);
	free(work);
}

static void job_over(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);
	struct mrf_list *node;

	work->running = false;
	let_go_of_region(work);
	while ((node = mrf_list_pop(&work->behind)))
		go_on(mrf_list_entry(node, struct mrf_work, node)->passive);
	if (work->passive)
		go_on(work->passive);
	else
		work_free(work);
}

static struct mrf_work *work_get(struct mrf_passive *passive, unsigned slot, size_t len)
{
	struct mrf_list *spare = mrf_list_pop(&mrf_eps_of(passive->ep->agent)->works);
	struct mrf_work *work =
		spare ? mrf_list_entry(spare, struct mrf_work, node) : malloc(sizeof(*work));

	if (!work)
		return NULL;
	mrf_list_init(&work->node);
	work->passive = passive;
	work->slot = slot;
	work->len = len;
	work->at = work->used = work->meant = 0;
	work->begun = work->flushed = work->running = false;
	mrf_list_init(&work->behind);
	work->staging = NULL;
	work->nparts = work->told = 0;
	work->job.over = job_over;
	atomic_init(&work->gone, false);
	return work;
}

void mrf_requests_leave(struct mrf_passive *passive)
{
	struct mrf_work *work = passive->work;

	if (!work)
		return;
	work->passive = NULL;
	atomic_store(&work->gone, true);
	if (work->running)
		mrf_list_add_tail(&work->node, &mrf_eps_of(passive->ep->agent)->orphans);
	else
		work_free(work);
	passive->work = NULL;
}

void mrf_requests_fini(struct mrf_eps *eps)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&eps->works)))
		free(mrf_list_entry(node, struct mrf_work, node));
}

/* --- serving them ------------------------------------------------------------------------ */

unsigned mrf_requests_in(const uint8_t *msg, size_t len)
{
	int type = mrf_msg_type(msg, len);
	unsigned n = 0;
	size_t one;

	if (type < 0 || !mrf_request_kind((enum mrf_msg_type)type))
		return 0;
	for (; len >= MRF_PROTO_REQUEST_HEAD; msg += one, len -= one, n++) {
		one = mrf_msg_len(msg);
		if (one < MRF_PROTO_REQUEST_HEAD || one > len)
			break;
	}
	return n;
}

/* Does the reply to one more request go into the message? A first one always does. */
static bool fits(struct mrf_work *work, const struct mrf_request *request)
{
	bool first = !work->meant;

	work->meant += mrf_work_reply(request);
	return first || work->meant <= MRF_PROTO_MAX_REPLY;
}

static int begin_request(struct mrf_work *work, const struct mrf_request *request)
{
	if (!fits(work, request))
		return -FI_EINVAL;
	work->reply = (struct mrf_reply){ .number = request->number, .body = mrf_work_body(work) };
	work->begun = true;
	work->counts = work->stored = work->names = false;
	work->results = NULL;
	return 0;
}

static int carry_out(struct mrf_work *work, const struct mrf_request *request)
{
	switch (mrf_request_kind(request->type)) {
	case MRF_REQUEST_ATOMIC:
		if (!(request->what & MRF_ATOMIC_WHAT_STAGED))
			return mrf_atomic_serve(work, request);
		return mrf_job_serve(work, request);
	case MRF_REQUEST_FLUSH:
	case MRF_REQUEST_STAGE:
	case MRF_REQUEST_BYTES:
		return mrf_job_serve(work, request);
	case MRF_REQUEST_SYNC:
		work->reply.done = request->len;
		return request->len == 1 && !request->body_len ? 0 : -FI_EINVAL;
	case MRF_NO_REQUEST:
		break;
	}
	return -FI_EINVAL;
}

/*
 * Requests are done in the order of their numbers. One that was not finished is sent again, and comes before those
 * that its initiator had already sent behind it. -FI_EINVAL: the number is impossible.
 */
static int in_order(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_passive *passive = work->passive;
	uint32_t behind = request->number - passive->number;
	int ret;

	if (behind >= MRF_REQUESTS)
		return -FI_EINVAL;
	if (behind) {
		work->reply.status = MRF_REPLY_NOT_NEXT;
		return mrf_parts_skip(work, request);
	}
	ret = carry_out(work, request);
	passive->number +=
		!ret && work->reply.status == MRF_REPLY_DONE && work->reply.done == request->len;
	return ret;
}

static int serve_one(struct mrf_work *work)
{
	const uint8_t *msg = work->passive->slots[work->slot] + work->at;
	struct mrf_request request;
	int ret = mrf_request_decode(msg, work->len - work->at, &request);

	if (!ret && !work->begun)
		ret = begin_request(work, &request);
	if (!ret)
		ret = in_order(work, &request);
	if (ret)
		return ret;
	work->used += mrf_reply_encode(&work->reply, work->replies + work->used);
	work->at += mrf_msg_len(msg);
	work->begun = false;
	return 0;
}

static int serve_all(struct mrf_work *work)
{
	int ret = 0;

	work->swaps = 0;
	while (!ret && work->at < work->len)
		ret = serve_one(work);
	return ret ? ret
		   : mrf_passive_send_back(work->passive, work->slot, work->replies, work->used);
}

int mrf_requests_serve(struct mrf_passive *passive, unsigned slot, size_t len)
{
	unsigned n = mrf_requests_in(passive->slots[slot], len);
	struct mrf_work *work = passive->work ? passive->work : work_get(passive, slot, len);
	int ret = work ? serve_all(work) : -FI_EAGAIN;

	passive->work = work;
	passive->away = ret == MRF_SERVE_JOB || ret == MRF_SERVE_BEHIND;
	if (ret > 0 || !work)
		return -FI_EAGAIN;
	passive->requests -= n;
	passive->work = NULL;
	mrf_list_add_head(&work->node, &mrf_eps_of(passive->ep->agent)->works);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/rx/device_parts.h"
#include "ep/rx/job_hold.h"
#include "ep/rx/staging.h"

static bool is_stage(const struct mrf_request *request)
{
	return mrf_request_kind(request->type) == MRF_REQUEST_STAGE;
}

static bool is_put(const struct mrf_request *request)
{
	return request->what & MRF_STAGE_PUT;
}

static uint64_t right_to(const struct mrf_request *request)
{
	return is_put(request) ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

/* --- which requests go together --------------------------------------------------------------- */

/* Requests of a message, from the one on whose turn it is, and what a job has of them so far. */
struct look {
	size_t at;	     /* where the next one begins */
	unsigned n;	     /* so many requests, */
	unsigned puts, gets; /* of them STAGE */
	size_t bodies;	     /* bytes of bodies, */
	size_t used, meant;  /* and of replies: as those of struct mrf_work */
};

static bool peek(const struct mrf_work *work, const struct look *look, struct mrf_request *request)
{
	const uint8_t *msg = work->passive->slots[work->slot];

	return look->at < work->len && look->n < MRF_REQUESTS &&
	       !mrf_request_decode(msg + look->at, work->len - look->at, request) &&
	       request->number == work->passive->number + look->n;
}

static void pass(const struct mrf_work *work, struct look *look, const struct mrf_request *request)
{
	look->at += mrf_msg_len(work->passive->slots[work->slot] + look->at);
	look->n++;
	look->puts += is_stage(request) && is_put(request);
	look->gets += is_stage(request) && !is_put(request);
	look->meant += mrf_work_reply(request);
}

static bool reply_fits(const struct look *look, const struct mrf_request *request)
{
	return look->meant + mrf_work_reply(request) <= MRF_PROTO_MAX_REPLY;
}

/* The bytes are in the request, or fit into the reply. */
static bool is_few(const struct mrf_request *request)
{
	if (!request->len || request->what & ~(MRF_STAGE_PUT | MRF_STAGE_COUNT))
		return false;
	return is_put(request) ? request->body_len == request->len
			       : request->len <= MRF_PROTO_REPLY_BODY;
}

static bool is_device_part(const struct mrf_work *work, const struct mrf_request *request)
{
	const struct mrf_staging *staging = work->passive->staging;

	if (!is_stage(request))
		return is_few(request);
	return staging && staging->pair && request->len && request->len <= MRF_PROTO_STAGE &&
	       !request->body_len && !(request->what & ~(MRF_STAGE_PUT | MRF_STAGE_COUNT));
}

/* The bytes of the next STAGE request have come, or there is a place for them. */
static bool is_ready(const struct mrf_work *work, const struct look *look,
		     const struct mrf_request *request)
{
	const struct mrf_staging *staging = work->passive->staging;

	return is_put(request) ? staging->came - staging->taken > look->puts
			       : staging->given + look->gets - staging->sent < MRF_PROTO_STAGES;
}

/* What has come is as long as the request says. */
static bool is_as_long(const struct mrf_work *work, const struct look *look,
		       const struct mrf_request *request)
{
	const struct mrf_staging *staging = work->passive->staging;

	return !is_put(request) ||
	       staging->len[(staging->taken + look->puts) % MRF_PROTO_STAGES] == request->len;
}

static bool part_is_there(const struct mrf_work *work, const struct look *look,
			  const struct mrf_request *request)
{
	return is_ready(work, look, request) && is_as_long(work, look, request);
}

/* Where the next request's place is, counted from when the connection was new. */
static unsigned next_place(const struct mrf_work *work, const struct look *look,
			   const struct mrf_request *request)
{
	const struct mrf_staging *staging = work->passive->staging;

	return is_put(request) ? staging->taken + look->puts : staging->given + look->gets;
}

/* May the request's bytes be copied in one go with those before it, which `all` names, in full places? */
static bool is_adjacent(const struct mrf_work *work, const struct look *look,
			const struct mrf_request *all, const struct mrf_request *request)
{
	return is_stage(request) && is_device_part(work, request) &&
	       is_put(request) == is_put(all) && request->key == all->key &&
	       request->serial == all->serial && request->addr == all->addr + all->len &&
	       !(all->what & MRF_STAGE_COUNT) && part_is_there(work, look, request) &&
	       reply_fits(look, request) && next_place(work, look, request) % MRF_PROTO_STAGES &&
	       !(all->len % MRF_PROTO_STAGE);
}

/* Passes the request, and those behind it that are adjacent: *all is about the bytes of them all. */
static void pass_run(const struct mrf_work *work, struct look *look, struct mrf_request *all)
{
	struct mrf_request next;

	pass(work, look, all);
	while (is_stage(all) && peek(work, look, &next) && is_adjacent(work, look, all, &next)) {
		all->len += next.len;
		all->what |= next.what;
		pass(work, look, &next);
	}
}

/* --- what a job has of them --------------------------------------------------------------------- */

static uint8_t *host_of(struct mrf_work *work, struct look *look, const struct mrf_request *request)
{
	uint8_t *at;

	if (is_stage(request))
		return mrf_staging_place(work->passive->staging, is_put(request),
					 next_place(work, look, request));
	/* The message may be gone when the job looks at it. */
	if (is_put(request)) {
		at = memcpy(work->body + look->bodies, request->body, request->len);
		look->bodies += request->len;
	} else {
		at = work->replies + look->used + MRF_PROTO_REPLY_HEAD;
		look->used += request->len;
	}
	return at;
}

/* The request, or *all of a run, is held in work->hold: it is one more part of the job. */
static void add_to_job(struct mrf_work *work, const struct mrf_request *all, uint8_t *host,
		       unsigned requests)
{
	work->parts[work->nparts++] = (struct mrf_part){
		.hold = work->hold,
		.host = host,
		.put = is_put(all),
		.requests = requests,
		.counts = mrf_job_counts(work, all->what & MRF_STAGE_COUNT),
		.event = work->event,
	};
	work->hold = (struct mrf_mr_hold){ .mr = NULL };
}

/* Holds the bytes in work->hold, if that can be at once. */
static bool hold_at_once(struct mrf_work *work, const struct mrf_request *request)
{
	const struct mrf_mr_query query = mrf_job_query(work, request);

	if (mrf_mr_stage_begin(&work->passive->ep->domain->space, &query, right_to(request),
			       &work->hold, &work->event) != MRF_MR_OK)
		return false;
	if (!mrf_job_late(work))
		return true;
	mrf_mr_hold_end(&work->hold);
	return false;
}

/* The request is held, and is done with what is adjacent, if all of that may be used. */
static void add_run(struct mrf_work *work, struct look *look, const struct mrf_request *request)
{
	struct mrf_mr_hold one = work->hold;
	struct mrf_request all = *request;
	uint8_t *host = host_of(work, look, request);
	struct look run = *look;
	unsigned first = look->n;

	pass_run(work, &run, &all);
	if (run.n > look->n + 1 && hold_at_once(work, &all)) {
		mrf_mr_hold_end(&one);
		add_to_job(work, &all, host, run.n - first);
		*look = run;
	} else {
		work->hold = one;
		add_to_job(work, request, host, 1);
		pass(work, look, request);
	}
	look->used += (look->n - first) * MRF_PROTO_REPLY_HEAD;
}

/* May the next request be done by the same job? */
static bool joins(const struct mrf_work *work, struct look *look, const struct mrf_request *request)
{
	if (!is_device_part(work, request))
		return false;
	return reply_fits(look, request) &&
	       (!is_stage(request) || part_is_there(work, look, request));
}

static bool is_of_parts(const struct mrf_request *request)
{
	switch (mrf_request_kind(request->type)) {
	case MRF_REQUEST_STAGE:
	case MRF_REQUEST_BYTES:
		return true;
	case MRF_REQUEST_ATOMIC:
	case MRF_REQUEST_FLUSH:
	case MRF_REQUEST_SYNC:
	case MRF_NO_REQUEST:
		break;
	}
	return false;
}

static void gather_parts(struct mrf_work *work, struct look *look)
{
	struct mrf_request request;

	while (peek(work, look, &request) && is_of_parts(&request) && joins(work, look, &request) &&
	       hold_at_once(work, &request))
		add_run(work, look, &request);
}

/* --- the job ------------------------------------------------------------------------------------ */

/* In a thread of the crew. What is behind one that fails is not done. */
static bool copy_parts(struct mrf_job *job)
{
	struct mrf_work *work = mrf_container_of(job, struct mrf_work, job);
	struct mrf_hmem_why why = { .text = "" };
	unsigned i;

	for (i = 0; i < work->nparts && !atomic_load(&work->gone); i++) {
		struct mrf_part *part = &work->parts[i];

		while (mrf_mr_stage_copy(&part->hold, part->put, &part->host, &part->err, &why) &&
		       !atomic_load(&work->gone))
			;
		part->done = true;
		if (part->err && part->err != FI_ECANCELED)
			mrf_warn(FI_LOG_EP_DATA, 4166, "a peer's %s device memory fails: %s",
				 part->put ? "write to" : "read from", why.text);
		if (part->err)
			break;
	}
	return false;
}

/* All that they hold ends, because there is no thread for them. */
static void drop_parts(struct mrf_work *work)
{
	while (work->nparts)
		mrf_mr_hold_end(&work->parts[--work->nparts].hold);
}

/* The peer names its end of the pair, and is told the name of ours. */
static int pair_up(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_staging *staging = work->passive->staging;
	struct mrf_vpair_name other, ours;
	struct mrf_pair_name name;
	int ret;

	if (!staging || staging->pair ||
	    mrf_pair_name_decode(request->body, request->body_len, &name))
		return -FI_EINVAL;
	work->names = true;
	other = (struct mrf_vpair_name){ .qpn = name.qpn, .psn = name.psn };
	ret = mrf_staging_open(work->passive, &other, &ours);
	if (ret == -FI_ECONNABORTED || ret == -FI_ECONNRESET)
		return -FI_ECONNABORTED;
	work->reply.status = ret ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	work->reply.err = (uint32_t)-ret;
	if (ret)
		return 0;
	name = (struct mrf_pair_name){ .qpn = ours.qpn, .psn = ours.psn };
	work->reply.body_len = (uint32_t)mrf_pair_name_encode(&name, mrf_work_body(work));
	return 0;
}

static bool names_pair(const struct mrf_request *request)
{
	return is_stage(request) && request->body_len;
}

int mrf_parts_begin(struct mrf_work *work, const struct mrf_request *request)
{
	struct look look = { .at = work->at,
			     .used = work->used,
			     .meant = work->meant - mrf_work_reply(request) };
	int ret;

	if (names_pair(request))
		return pair_up(work, request);
	if (!is_device_part(work, request))
		return -FI_EINVAL;
	if (is_stage(request) && !mrf_staging_ready(work->passive->staging, is_put(request)))
		return MRF_SERVE_BEHIND;
	if (is_stage(request) && !is_as_long(work, &look, request))
		return -FI_EINVAL;
	if (!mrf_job_hold(work, request, right_to(request), &ret))
		return ret;
	work->nparts = work->told = 0;
	add_run(work, &look, request);
	gather_parts(work, &look);
	if (look.puts || look.gets)
		work->staging = mrf_staging_get(work->passive);
	ret = mrf_job_start(work, copy_parts);
	if (!ret)
		drop_parts(work);
	return ret;
}

void mrf_parts_take(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_part *part = &work->parts[work->told];

	work->err = part->done ? part->err : FI_ECANCELED;
	work->results = is_stage(request) || part->put ? NULL : mrf_work_body(work);
	work->told += !--part->requests;
}

/* --- the end of STAGE requests --------------------------------------------------------------- */

int mrf_parts_end(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_staging *staging = work->passive->staging;

	if (!is_stage(request) || work->names)
		return 0;
	/* It has none any more if it was disconnected meanwhile. */
	if (!staging)
		return -FI_ECONNABORTED;
	if (is_put(request))
		return mrf_staging_take(staging);
	return mrf_staging_give(staging, work->reply.status == MRF_REPLY_DONE ? request->len : 0);
}

int mrf_parts_skip(struct mrf_work *work, const struct mrf_request *request)
{
	/* One that names a pair has no other bytes. */
	if (!is_stage(request) || request->body_len)
		return 0;
	if (!is_device_part(work, request))
		return -FI_EINVAL;
	if (!mrf_staging_ready(work->passive->staging, is_put(request)))
		return MRF_SERVE_BEHIND;
	return mrf_parts_end(work, request);
}

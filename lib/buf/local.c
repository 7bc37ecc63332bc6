/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unregistered memory may not be mapped, and other threads may unmap it meanwhile. So the
 * kernel copies it (base/user.h), and returns EFAULT where a load would end in a SIGSEGV.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/page.h"
#include "base/param.h"
#include "base/user.h"
#include "buf/local.h"
#include "buf/local_int.h"
#include "buf/rest.h"
#include "mr/desc.h"
#include "mr/space.h"

void mrf_buf_init(struct mrf_buf *buf, const struct mrf_mr_space *space, struct mrf_cache *cache)
{
	buf->space = space;
	buf->cache = cache;
	buf->copy_max = (uint64_t)mrf_param_int(MRF_PARAM_BOUNCE_MAX);
	mrf_bounce_init(&buf->bounce, space->pd);
	mrf_stage_pool_init(&buf->stage, MRF_STAGE_RINGS);
	mrf_stage_pool_init(&buf->going, UINT_MAX);
	mrf_stage_pool_init(&buf->coming, UINT_MAX);
}

void mrf_buf_fini(struct mrf_buf *buf)
{
	mrf_stage_pool_fini(&buf->coming);
	mrf_stage_pool_fini(&buf->going);
	mrf_stage_pool_fini(&buf->stage);
	mrf_bounce_fini(&buf->bounce);
}

int mrf_local_check(const struct mrf_buf *buf, const struct mrf_local_req *req, const char *what,
		    unsigned code)
{
	size_t i;
	int ret = 0;

	if (!(buf->space->mode & (FI_MR_LOCAL | FI_MR_HMEM)))
		return 0;
	for (i = 0; i < req->count && !ret; i++) {
		if (req->iov[i].iov_len)
			ret = mrf_local_desc_check(buf, req, i, what, code);
	}
	return ret;
}

/* --- more buffers than are held ------------------------------------------------------ */

/* -FI_ENOMEM. */
static int keep_rest(struct mrf_local *local, const struct mrf_local_req *req, uint64_t upto)
{
	local->rest = mrf_local_rest_new(req, upto);
	local->copy = local->copy ? local->copy : local;
	return local->rest ? 0 : -FI_ENOMEM;
}

/* A part of the buffers. */
struct part {
	struct iovec iov[MRF_LOCAL_IOV];
	void *desc[MRF_LOCAL_IOV];
	size_t number[MRF_LOCAL_IOV]; /* of each buffer, among all of the transfer */
};

/* All of the buffers. */
static struct mrf_local_req whole_part(const struct mrf_local_rest *rest)
{
	return (struct mrf_local_req){ .iov = rest->iov,
				       .desc = rest->desc,
				       .count = rest->count,
				       .total = rest->total,
				       .arrives = rest->arrives,
				       .message = rest->message,
				       .whole = true };
}

/* The buffers from a byte on, as many as are held at a time. */
static struct mrf_local_req cut_part(const struct mrf_local_rest *rest, uint64_t from,
				     struct part *part)
{
	struct mrf_local_req req = { .iov = part->iov,
				     .desc = rest->desc ? part->desc : NULL,
				     .number = part->number,
				     .arrives = rest->arrives,
				     .message = rest->message };
	uint64_t skip = from;
	size_t i;

	for (i = 0; i < rest->count && req.count < MRF_LOCAL_IOV; i++) {
		if (skip >= rest->iov[i].iov_len) {
			skip -= rest->iov[i].iov_len;
			continue;
		}
		part->iov[req.count].iov_base = (uint8_t *)rest->iov[i].iov_base + skip;
		part->iov[req.count].iov_len = rest->iov[i].iov_len - skip;
		part->desc[req.count] = rest->desc ? rest->desc[i] : NULL;
		part->number[req.count] = i;
		req.total += part->iov[req.count++].iov_len;
		skip = 0;
	}
	return req;
}

/* --- copies --------------------------------------------------------------------------- */

/* -FI_ENOMEM. */
static int keep_user(struct mrf_local *local, const struct mrf_local_req *req)
{
	void **desc;
	struct iovec *user = mrf_local_user_room(local, req->count, &desc);

	if (!user)
		return -FI_ENOMEM;
	local->nuser = (int)req->count;
	memcpy(user, req->iov, req->count * sizeof(*req->iov));
	return 0;
}

/*
 * The first part is read during the application's call; the others are when it is their turn. With
 * FI_HMEM it may be device memory, whose descriptor was forgotten.
 */
static int read_user(const struct mrf_buf *buf, const struct mrf_local *local,
		     const struct mrf_local_req *req, void *to)
{
	if (mrf_likely(!local->rest && !(buf->space->mode & FI_MR_HMEM)))
		return mrf_user_take(to, req->iov, req->count);
	return mrf_user_get(to, req->iov, req->count);
}

/* 1: no slot is left. -FI_EFAULT or -FI_ENOMEM. */
static int use_bounce(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	uint32_t lkey;
	void *slot = mrf_bounce_take(&buf->bounce, &lkey);
	int ret;

	if (!slot)
		return 1;
	ret = req->arrives ? keep_user(local, req) : read_user(buf, local, req, slot);
	if (ret) {
		mrf_bounce_give(&buf->bounce, slot);
		return ret;
	}
	local->kind = MRF_LOCAL_BOUNCE;
	local->copy = slot;
	mrf_local_add(local, (uintptr_t)slot, req->total, lkey);
	return 0;
}

/* -FI_EFAULT. */
static int use_inline(const struct mrf_buf *buf, const struct mrf_local_req *req,
		      struct mrf_local *local)
{
	local->kind = MRF_LOCAL_INLINE;
	mrf_local_add(local, (uintptr_t)local->data, req->total, 0);
	return read_user(buf, local, req, local->data);
}

static int explain_local(const struct mrf_local_req *req, int err)
{
	const struct iovec *iov = req->iov;
	char why[MRF_PAGE_TEXT];
	size_t left = req->count;

	if (err != -FI_EFAULT) {
		mrf_page_explain_memlock(req->total, why, sizeof(why));
		return mrf_refuse(-err, FI_LOG_EP_DATA, 4014,
				  "local buffers of %zu byte%s cannot be pinned: %s",
				  (size_t)req->total, MRF_S(req->total), why);
	}
	while (!mrf_page_explain(iov->iov_base, iov->iov_len, req->arrives, why, sizeof(why)) &&
	       --left)
		iov++;
	return mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, 4013, "local buffer %p, %zu byte%s: %s",
			  iov->iov_base, iov->iov_len, MRF_S(iov->iov_len), why);
}

/* 1: the buffers are too long for a copy. */
static int use_small(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	if (req->total <= MRF_LIMIT_INJECT && !req->arrives)
		return use_inline(buf, req, local);
	/* A part of a transfer that arrives would have to be copied before the next part comes. */
	if (req->total <= buf->copy_max && !(local->rest && req->arrives))
		return use_bounce(buf, req, local);
	return 1;
}

/* 1: no slot is left. Other errors as those of mrf_local_pin. */
static int use_copy(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	if (req->total <= MRF_LIMIT_INJECT)
		return use_inline(buf, req, local);
	return req->total <= MRF_BOUNCE_SIZE ? use_bounce(buf, req, local)
					     : mrf_local_copy(buf, req, local);
}

/*
 * Few bytes, or too many buffers or pieces to be held, all of which are needed at a time: a copy. 1: it
 * has to be made later. -FI_EAGAIN: all slots for copies are in use.
 */
static int take_copied(struct mrf_buf *buf, const struct mrf_local_req *req,
		       struct mrf_local *local, uint64_t *covered)
{
	int ret = req->inject ? 0 : mrf_local_check(buf, req, NULL, MRF_LOCAL_MISSING);

	if (ret || req->late)
		return ret ? ret : 1;
	*covered = req->total;
	ret = use_copy(buf, req, local);
	/* It is too late to tell the application to try again. */
	if (ret == 1 && local->rest)
		ret = mrf_local_copy(buf, req, local);
	if (ret == 1)
		return -FI_EAGAIN;
	return ret ? explain_local(req, ret) : 0;
}

/* *covered: how many bytes are held. 1: there are too many buffers to register at a time. */
static int take_what_fits(struct mrf_buf *buf, const struct mrf_local_req *req,
			  struct mrf_local *local, uint64_t *covered)
{
	bool strict = buf->space->mode & FI_MR_LOCAL;
	bool few = req->count <= MRF_LOCAL_IOV;
	int ret = 1;

	/* A few bytes of a message go in one piece with its head. */
	if (req->whole && (req->total <= MRF_LIMIT_INJECT || mrf_unlikely(!few)))
		return take_copied(buf, req, local, covered);
	/* Injected bytes are copied before the call returns, and need no registration. */
	if (!req->inject && (strict || (req->desc && few)))
		ret = mrf_local_desc_use(buf, req, local, strict, covered);
	if (ret < 0 || (!ret && (!req->whole || *covered == req->total)))
		return ret;
	local->nsge = local->ndesc = 0;
	/* Their regions have more segments than are held. */
	if (mrf_unlikely(!ret))
		return take_copied(buf, req, local, covered);
	if (mrf_unlikely(req->late))
		return 1;
	*covered = req->total;
	ret = use_small(buf, req, local);
	if (ret == 1 && few)
		ret = mrf_local_pin(buf, req, local);
	return ret < 0 ? explain_local(req, ret) : ret;
}

/* Every look-up of an address relies on this check. */
static int check_buffers_end(const struct mrf_local_req *req)
{
	const struct iovec *iov = req->iov, *end = iov + req->count;

	for (; iov < end; iov++) {
		if (mrf_unlikely(!mrf_range_ok((uintptr_t)iov->iov_base, iov->iov_len)))
			return mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, 4018,
					  "local buffer %zu: %p + %zu byte%s passes the end of the "
					  "address space",
					  (size_t)(iov - req->iov), iov->iov_base, iov->iov_len,
					  MRF_S(iov->iov_len));
	}
	return 0;
}

static int take_host(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	uint64_t covered;
	int ret = take_what_fits(buf, req, local, &covered);

	if (mrf_likely(ret < 0 || (!ret && covered == req->total)))
		return ret;
	if (keep_rest(local, req, ret ? 0 : covered))
		ret = explain_local(req, -FI_ENOMEM);
	else if (ret)
		ret = req->late ? 0 : mrf_local_reach(buf, local, 0);
	if (ret)
		mrf_local_drop(buf, local);
	return ret;
}

int mrf_local_take(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	int ret = check_buffers_end(req);

	if (ret || !req->total)
		return ret;
	if (mrf_likely(!(buf->space->mode & FI_MR_HMEM)))
		return take_host(buf, req, local);
	ret = mrf_local_check(buf, req, NULL, MRF_LOCAL_MISSING);
	if (ret || !mrf_stage_needed(buf, req))
		return ret ? ret : take_host(buf, req, local);
	ret = mrf_stage_take(buf, req, local);
	if (ret)
		mrf_local_drop(buf, local);
	return ret;
}

/* --- afterwards ----------------------------------------------------------------------- */

static void let_go(struct mrf_buf *buf, struct mrf_local *local)
{
	mrf_local_unpin(local);
	if (local->kind == MRF_LOCAL_BOUNCE)
		mrf_bounce_give(&buf->bounce, local->copy);
	else if (local->kind == MRF_LOCAL_STAGED)
		mrf_stage_give(buf, local);
	/* Nothing stays held, even if the next part fails. */
	local->copy = NULL;
	local->kind = MRF_LOCAL_DESC;
}

void mrf_local_drop(struct mrf_buf *buf, struct mrf_local *local)
{
	let_go(buf, local);
	free(local->rest);
	local->rest = NULL;
}

int mrf_local_reach(struct mrf_buf *buf, struct mrf_local *local, uint64_t from)
{
	struct mrf_local_rest *rest = local->rest;
	struct mrf_local_req req;
	struct part part;
	uint64_t covered = 0;
	int ret;

	let_go(buf, local);
	local->nsge = local->ndesc = 0;
	req = rest->whole ? whole_part(rest) : cut_part(rest, from, &part);
	ret = take_what_fits(buf, &req, local, &covered);
	local->copy = local->copy ? local->copy : local;
	rest->from = from;
	rest->upto = ret ? from : from + covered;
	return ret;
}

bool mrf_local_open(const struct mrf_buf *buf, const struct mrf_local *local)
{
	int i;

	if (local->kind != MRF_LOCAL_DESC)
		return true;
	for (i = 0; i < local->ndesc; i++) {
		if (!mrf_desc_live(buf->space, local->desc[i]))
			return false;
	}
	return true;
}

void *mrf_local_memory(const struct mrf_buf *buf, const struct mrf_local *local)
{
	switch (local->kind) {
	case MRF_LOCAL_INLINE:
		return (void *)(uintptr_t)local->data;
	case MRF_LOCAL_BOUNCE:
		return local->copy;
	case MRF_LOCAL_STAGED:
		return local->rest->memory;
	case MRF_LOCAL_DESC:
		return mrf_local_desc_memory(buf, local);
	case MRF_LOCAL_CACHED: /* may cease to be mapped */
	case MRF_LOCAL_TEMP:
	case MRF_LOCAL_COPY:
	case MRF_LOCAL_APART:
		break;
	}
	return NULL;
}

int mrf_local_sges(const struct mrf_local *local, uint64_t from, uint64_t *len, struct mrf_sge *sge,
		   int max)
{
	uint64_t covered = 0, skip = local->rest ? from - local->rest->from : from;
	int i, n = 0;

	if (mrf_unlikely(local->kind == MRF_LOCAL_STAGED))
		return mrf_stage_sge(local, from, len, sge);
	for (i = 0; i < local->nsge && covered < *len && n < max; i++) {
		uint64_t take;

		if (skip >= local->sge[i].len) {
			skip -= local->sge[i].len;
			continue;
		}
		take = mrf_min(local->sge[i].len - skip, *len - covered);
		sge[n++] = (struct mrf_sge){ .addr = local->sge[i].addr + skip,
					     .len = (uint32_t)take,
					     .lkey = local->sge[i].lkey };
		covered += take;
		skip = 0;
	}
	*len = covered;
	return n;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unregistered memory may not be there, and other threads may unmap it meanwhile. So the
 * kernel copies it (base/user.h) and answers EFAULT where a load would end in a SIGSEGV.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/page.h"
#include "base/param.h"
#include "base/user.h"
#include "buf/cache.h"
#include "buf/local.h"
#include "buf/rest.h"
#include "mr/demand/backs.h"
#include "mr/desc.h"
#include "mr/device.h"
#include "mr/space.h"

void mrf_buf_init(struct mrf_buf *buf, const struct mrf_mr_space *space, struct mrf_cache *cache)
{
	buf->space = space;
	buf->cache = cache;
	buf->copy_max = (uint64_t)mrf_param_int(MRF_PARAM_BOUNCE_MAX);
	mrf_bounce_init(&buf->bounce, space->pd);
	mrf_stage_init(&buf->stage);
}

void mrf_buf_fini(struct mrf_buf *buf)
{
	mrf_stage_fini(&buf->stage);
	mrf_bounce_fini(&buf->bounce);
}

/* --- buffers that the application registered ------------------------------------------ */

/* In the order of the codes of their messages. */
enum fault { MISSING, NO_RIGHT, OUTSIDE, NONE };

/* local: FI_MR_LOCAL is in force. */
static int refuse_desc(enum fault fault, unsigned code, const char *name, const struct iovec *iov,
		       const void *desc, uint64_t right, bool local)
{
	code += fault;
	if (fault == MISSING && desc && !local)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_EP_DATA, code,
			"desc %p of %s is not a descriptor of this domain: with FI_MR_HMEM "
			"it has to be that of an open region, or NULL for memory of the "
			"host that is not registered",
			desc, name);
	if (fault == MISSING)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, code,
				  "desc %p of %s is %s: the domain has FI_MR_LOCAL, so each local "
				  "buffer needs the fi_mr_desc of an open region of this domain",
				  desc, name, desc ? "not a descriptor of this domain" : "missing");
	if (fault == NO_RIGHT)
		return mrf_refuse(FI_EACCES, FI_LOG_EP_DATA, code,
				  "%s at %p: its region was registered without %s", name,
				  iov->iov_base, right == FI_READ ? "FI_READ" : "FI_WRITE");
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, code,
			  "%s (%p, %zu byte%s) is not inside the region of its desc", name,
			  iov->iov_base, iov->iov_len, MRF_S(iov->iov_len));
}

static void add_sge(struct mrf_local *local, uint64_t addr, uint64_t len, uint32_t lkey)
{
	local->sge[local->nsge++] =
		(struct mrf_sge){ .addr = addr, .len = (uint32_t)len, .lkey = lkey };
}

/* How far the pieces of descriptors have been added. */
struct fit {
	bool unusable;	/* there is one that the device cannot use as it is: pinned on demand */
	bool full;	/* there is no room for another one */
	uint64_t bytes; /* of those that were added */
};

static void add_piece(struct mrf_local *local, const struct mrf_mr_seg *seg, uint64_t offset,
		      uint64_t len, struct fit *fit)
{
	fit->unusable |= !seg->lkey;
	fit->full |= local->nsge == MRF_LOCAL_SGE;
	if (fit->unusable || fit->full)
		return;
	add_sge(local, seg->iova + offset, len, seg->lkey);
	fit->bytes += len;
}

/* Looks whether a buffer is inside the region of its descriptor and, with local, adds its pieces. */
static enum fault add_desc(struct mrf_local *local, const struct mrf_desc *desc,
			   const struct iovec *iov, struct fit *fit)
{
	const struct mrf_mr_seg *segs = desc->nseg > 1 ? desc->segs : &desc->seg;
	uint64_t addr = (uintptr_t)iov->iov_base, left = iov->iov_len, n, offset;
	unsigned i;

	for (; left; addr += n, left -= n) {
		n = mrf_mr_locate(segs, desc->nseg, true, addr, left, &i, &offset);
		if (!n)
			return OUTSIDE;
		n = mrf_min(n, UINT32_MAX & ~0xfffu);
		if (local)
			add_piece(local, &segs[i], offset, n, fit);
	}
	return NONE;
}

static enum fault look_at_desc(const struct mrf_buf *buf, struct mrf_local *local,
			       const void *value, const struct iovec *iov, uint64_t right,
			       struct fit *fit)
{
	struct mrf_desc desc;

	if (!value || !mrf_desc_get(buf->space, value, &desc))
		return MISSING;
	if (!(desc.access & right))
		return NO_RIGHT;
	return add_desc(local, &desc, iov, fit);
}

struct buffer_name {
	char text[64];
};

static const char *name_buffer(struct buffer_name *name, const char *what, size_t i)
{
	if (what)
		snprintf(name->text, sizeof(name->text), "a buffer of %s", what);
	else
		snprintf(name->text, sizeof(name->text), "buffer %zu", i);
	return name->text;
}

/* Without one it is used as memory of the host. */
static int check_undescribed(const struct mrf_buf *buf, const struct iovec *iov, const char *what,
			     size_t i, unsigned code)
{
	struct buffer_name name;

	if (!(buf->space->mode & FI_MR_HMEM))
		return 0;
	return mrf_mr_device_refuse(iov->iov_base, code, name_buffer(&name, what, i));
}

/* Names take longer than the rest: only what is refused has one, where that is known. */
static int check_buffer(const struct mrf_buf *buf, const struct mrf_local_req *req, size_t i,
			const char *what, unsigned code)
{
	struct buffer_name name;
	bool local = buf->space->mode & FI_MR_LOCAL && !req->inject;
	uint64_t right = req->arrives ? FI_READ : FI_WRITE;
	void *desc = req->desc ? req->desc[i] : NULL;
	enum fault fault;

	if (req->inject && !(buf->space->mode & FI_MR_HMEM))
		return 0;
	if (!desc && !local)
		return check_undescribed(buf, &req->iov[i], what, i, code);
	fault = look_at_desc(buf, NULL, desc, &req->iov[i], right, NULL);
	if (fault == NONE)
		return 0;
	return refuse_desc(fault, code, name_buffer(&name, what, i), &req->iov[i], desc, right,
			   local);
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
			ret = check_buffer(buf, req, i, what, code);
	}
	return ret;
}

/* Of operations with FI_MR_LOCAL: no descriptor, and those that follow. */
enum { CODE_MISSING = 4010, CODE_NO_RIGHT, CODE_OUTSIDE };

static int refuse_buffer(enum fault fault, size_t i, const struct mrf_local_req *req)
{
	char name[32];

	snprintf(name, sizeof(name), "buffer %zu", req->number ? req->number[i] : i);
	return refuse_desc(fault, CODE_MISSING, name, &req->iov[i], req->desc ? req->desc[i] : NULL,
			   req->arrives ? FI_READ : FI_WRITE, true);
}

/*
 * Takes the descriptors, of as many bytes as there is room for (*covered). strict (FI_MR_LOCAL): each
 * that does not fit is an error, wherever it is; otherwise the page says that they are ignored, so
 * anything may stand there. Returns 1 when the buffers are to be registered after all.
 */
static int use_desc(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local,
		    bool strict, uint64_t *covered)
{
	uint64_t right = req->arrives ? FI_READ : FI_WRITE;
	struct fit fit = { false };
	enum fault fault;
	size_t i;

	for (i = 0; i < req->count; i++) {
		void *value = req->desc ? req->desc[i] : NULL;

		if (!req->iov[i].iov_len)
			continue;
		fit.full |= local->ndesc == MRF_LOCAL_IOV;
		if (!fit.full)
			local->desc[local->ndesc++] = value;
		fault = look_at_desc(buf, local, value, &req->iov[i], right, &fit);
		if (fault != NONE)
			return strict ? refuse_buffer(fault, i, req) : 1;
	}
	local->kind = MRF_LOCAL_DESC;
	*covered = fit.bytes;
	return fit.unusable;
}

/* --- more of them than are held ---------------------------------------------------------- */

/* -FI_ENOMEM. */
static int keep_rest(struct mrf_local *local, const struct mrf_local_req *req, uint64_t upto)
{
	local->rest = mrf_local_rest_new(req, upto);
	local->copy = local->copy ? local->copy : local;
	return local->rest ? 0 : -FI_ENOMEM;
}

/* Some of the buffers. */
struct part {
	struct iovec iov[MRF_LOCAL_IOV];
	void *desc[MRF_LOCAL_IOV];
	size_t number[MRF_LOCAL_IOV]; /* of each, among all */
};

/* Those from a byte on, as many as are held at a time. */
static struct mrf_local_req cut_part(const struct mrf_local_rest *rest, uint64_t from,
				     struct part *part)
{
	struct mrf_local_req req = { .iov = part->iov,
				     .desc = rest->desc ? part->desc : NULL,
				     .number = part->number,
				     .arrives = rest->arrives };
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

/* --- buffers that nobody registered --------------------------------------------------- */

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

/* 1 when there is no slot (left); the caller has another way. -FI_EFAULT or -FI_ENOMEM. */
static int use_bounce(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	uint32_t lkey;
	void *slot = mrf_bounce_take(&buf->bounce, &lkey);
	int ret;

	if (!slot)
		return 1;
	ret = req->arrives ? keep_user(local, req) : mrf_user_get(slot, req->iov, req->count);
	if (ret) {
		mrf_bounce_give(&buf->bounce, slot);
		return ret;
	}
	local->kind = MRF_LOCAL_BOUNCE;
	local->copy = slot;
	add_sge(local, (uintptr_t)slot, req->total, lkey);
	return 0;
}

/* -FI_EFAULT. */
static int use_inline(const struct mrf_local_req *req, struct mrf_local *local)
{
	local->kind = MRF_LOCAL_INLINE;
	add_sge(local, (uintptr_t)local->data, req->total, 0);
	return mrf_user_get(local->data, req->iov, req->count);
}

static void drop_cached(struct mrf_local *local)
{
	while (local->ncached)
		mrf_cache_put(local->cached[--local->ncached]);
}

/* 1: some of it cannot be kept, and nothing is held. */
static int use_cache(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	const struct iovec *iov = req->iov, *end = iov + req->count;
	int ret = 0;

	local->kind = MRF_LOCAL_CACHED;
	local->copy = local;
	for (; iov < end && !ret; iov++) {
		struct mrf_cached **entry = &local->cached[local->ncached];

		if (!iov->iov_len)
			continue;
		ret = mrf_cache_get(buf->cache, iov->iov_base, iov->iov_len, req->arrives, entry);
		if (ret)
			break;
		local->ncached++;
		add_sge(local, (uintptr_t)iov->iov_base, iov->iov_len, mrf_cache_lkey(*entry));
	}
	if (!ret)
		return 0;
	drop_cached(local);
	local->copy = NULL;
	local->nsge = 0;
	return ret;
}

static void drop_temp(struct mrf_local *local)
{
	while (local->ntemp)
		mrf_vmr_drop(&local->temp[--local->ntemp]);
	free(local->temp);
	local->temp = NULL;
}

static int register_one(const struct mrf_buf *buf, struct mrf_local *local, unsigned rights,
			void *addr, size_t len)
{
	struct mrf_vmr *mr = &local->temp[local->ntemp];
	int ret = mrf_room_reg(buf->space->pd, addr, len, (uintptr_t)addr, rights, mr);

	if (ret)
		return ret;
	local->ntemp++;
	add_sge(local, (uintptr_t)addr, len, mr->lkey);
	return 0;
}

static int use_temp(const struct mrf_buf *buf, const struct mrf_local_req *req,
		    struct mrf_local *local)
{
	unsigned rights = req->arrives ? MRF_RIGHT_LOCAL_WRITE : 0;
	size_t i;
	int ret = 0;

	local->kind = MRF_LOCAL_TEMP;
	local->temp = calloc(req->count, sizeof(*local->temp));
	if (!local->temp)
		return -FI_ENOMEM;
	for (i = 0; i < req->count && !ret; i++) {
		if (req->iov[i].iov_len)
			ret = register_one(buf, local, rights, req->iov[i].iov_base,
					   req->iov[i].iov_len);
	}
	if (ret)
		drop_temp(local);
	return ret;
}

/*
 * A source that cannot be pinned may still be readable: Linux 6.1 does not pin a read-only
 * shared mapping. The kernel copies it for us, and says so instead of a SIGSEGV if it cannot.
 */
static int use_copy(const struct mrf_buf *buf, const struct mrf_local_req *req,
		    struct mrf_local *local)
{
	struct iovec to = { .iov_len = req->total };
	int ret = -FI_ENOMEM;

	/* Beginning at a page, it is not longer than the kernel takes. */
	if (posix_memalign(&to.iov_base, mrf_page_size(), req->total))
		return ret;
	local->temp = calloc(1, sizeof(*local->temp));
	if (!local->temp)
		goto err_free;
	ret = -FI_EFAULT;
	if (process_vm_readv(getpid(), &to, 1, req->iov, req->count, 0) != (ssize_t)req->total)
		goto err_free;
	local->nsge = 0;
	ret = register_one(buf, local, 0, to.iov_base, req->total);
	if (ret)
		goto err_free;
	local->kind = MRF_LOCAL_COPY;
	local->copy = to.iov_base;
	return 0;

err_free:
	free(local->temp);
	local->temp = NULL;
	free(to.iov_base);
	return ret;
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

_Static_assert(MRF_LIMIT_MSG_SIZE <= MRF_VMR_PAGES * 4096ul, "one buffer becomes two pieces");

static size_t cut_buffers(const struct mrf_local_req *req, struct iovec *piece)
{
	struct iovec rest;
	size_t i, n = 0;

	for (i = 0; i < req->count; i++) {
		rest = req->iov[i];
		while (rest.iov_len)
			mrf_vmr_piece(&rest, &piece[n++]);
	}
	return n;
}

/* Small transfers have been given slots, and take another way only when none is left. */
static int use_registration(struct mrf_buf *buf, const struct mrf_local_req *req,
			    struct mrf_local *local)
{
	struct iovec piece[MRF_LOCAL_PIECES];
	struct mrf_local_req cut = *req;
	int ret = 1;

	if (mrf_unlikely(req->total > MRF_VMR_FITS)) {
		cut.count = cut_buffers(req, piece);
		cut.iov = piece;
		req = &cut;
	}
	if (req->total > buf->copy_max || local->rest)
		ret = use_cache(buf, req, local);
	if (ret == 1)
		ret = use_temp(buf, req, local);
	if (ret == -FI_EFAULT && !req->arrives)
		ret = use_copy(buf, req, local);
	return ret;
}

/* 1: they are too long for that. */
static int use_small(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	if (req->total <= MRF_LIMIT_INJECT && !req->arrives)
		return use_inline(req, local);
	/* What is only a part of what arrives would have to be copied before the next part comes. */
	if (req->total <= buf->copy_max && !(local->rest && req->arrives))
		return use_bounce(buf, req, local);
	return 1;
}

/* *covered: how many bytes are held. 1: nobody registered them, and they are too many at a time. */
static int take_what_fits(struct mrf_buf *buf, const struct mrf_local_req *req,
			  struct mrf_local *local, uint64_t *covered)
{
	bool strict = buf->space->mode & FI_MR_LOCAL;
	bool few = req->count <= MRF_LOCAL_IOV;
	int ret = 1;

	/* What is injected is copied before the call returns: nothing to register. */
	if (!req->inject && (strict || (req->desc && few)))
		ret = use_desc(buf, req, local, strict, covered);
	if (ret <= 0)
		return ret;
	local->nsge = local->ndesc = 0;
	if (mrf_unlikely(req->late))
		return 1;
	*covered = req->total;
	ret = use_small(buf, req, local);
	if (ret == 1 && few)
		ret = use_registration(buf, req, local);
	return ret < 0 ? explain_local(req, ret) : ret;
}

/* Whatever looks an address up relies on it. */
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
	ret = mrf_local_check(buf, req, NULL, CODE_MISSING);
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
	drop_temp(local);
	drop_cached(local);
	if (local->kind == MRF_LOCAL_COPY)
		free(local->copy);
	else if (local->kind == MRF_LOCAL_BOUNCE)
		mrf_bounce_give(&buf->bounce, local->copy);
	else if (local->kind == MRF_LOCAL_STAGED)
		mrf_stage_give(buf, local);
	/* Nothing is held, whatever becomes of the next part. */
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
	req = cut_part(rest, from, &part);
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

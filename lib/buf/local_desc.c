/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "buf/local_int.h"
#include "mr/desc.h"
#include "mr/device.h"

/* The order is that of the message codes. */
enum fault { MISSING, NO_RIGHT, OUTSIDE, NONE };

/* What the region of a local buffer has to be registered for. */
static uint64_t right_for(const struct mrf_local_req *req)
{
	if (req->message)
		return req->arrives ? FI_RECV : FI_SEND;
	return req->arrives ? FI_READ : FI_WRITE;
}

static const char *right_name(uint64_t right)
{
	if (right & (FI_RECV | FI_SEND))
		return right == FI_RECV ? "FI_RECV" : "FI_SEND";
	return right == FI_READ ? "FI_READ" : "FI_WRITE";
}

/* local: FI_MR_LOCAL is in force. */
static int refuse_desc(enum fault fault, unsigned code, const char *name, const struct iovec *iov,
		       const void *desc, uint64_t right, bool local)
{
	code += fault;
	if (fault == MISSING && desc && !local)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_EP_DATA, code,
			"desc %p of %s is not a descriptor of this domain: with FI_MR_HMEM "
			"it has to be that of an open region, or NULL for "
			"host memory that is not registered",
			desc, name);
	if (fault == MISSING)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_EP_DATA, code,
			"desc %p of %s is %s: the domain has FI_MR_LOCAL, so each local "
			"buffer needs the fi_mr_desc of an open region of this domain "
			"(with FI_MRFAB_MR_MODE=0, and no FI_MRFAB_PROFILE, the program runs "
			"without that)",
			desc, name, desc ? "not a descriptor of this domain" : "missing");
	if (fault == NO_RIGHT)
		return mrf_refuse(FI_EACCES, FI_LOG_EP_DATA, code,
				  "%s at %p: its region was registered without %s", name,
				  iov->iov_base, right_name(right));
	return mrf_refuse(
		FI_EINVAL, FI_LOG_EP_DATA, code,
		"%s (%p, %zu byte%s) is not inside the region of its desc "
		"(with FI_MRFAB_MR_MODE=0, and no FI_MRFAB_PROFILE, no descriptor is looked "
		"at)",
		name, iov->iov_base, iov->iov_len, MRF_S(iov->iov_len));
}

/* The result of adding the pieces that descriptors name. */
struct fit {
	bool unusable;	/* the device cannot use one of them, which is pinned on demand */
	bool full;	/* there is no room for one of them */
	uint64_t bytes; /* length of the pieces that were added */
};

static void add_piece(struct mrf_local *local, const struct mrf_mr_seg *seg, uint64_t offset,
		      uint64_t len, struct fit *fit)
{
	fit->unusable |= !seg->lkey;
	fit->full |= local->nsge == MRF_LOCAL_SGE;
	if (fit->unusable || fit->full)
		return;
	mrf_local_add(local, seg->iova + offset, len, seg->lkey);
	fit->bytes += len;
}

/* Checks that a buffer is inside the region of its descriptor. With local, adds its pieces. */
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

/* Without FI_MR_LOCAL the buffer is reached in another way, and the program does not learn of it. */
static __attribute__((noinline)) void tell_ignored(const struct mrf_buf *buf, enum fault fault,
						   const struct iovec *iov, const void *desc)
{
	static const char *const what[] = { "is not a descriptor of this domain",
					    "is of a region without the right for this operation",
					    "is of a region that does not contain the buffer" };

	if (desc && buf->space->careful)
		mrf_misuse(
			FI_LOG_EP_DATA, 4033,
			"desc %p of the buffer at %p (%zu byte%s) %s: it is ignored, because "
			"FI_MR_LOCAL is not in force; a provider that needs it fails or uses other "
			"memory",
			desc, iov->iov_base, iov->iov_len, MRF_S(iov->iov_len), what[fault]);
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

/* A buffer without a descriptor is used as memory of the host. */
static int check_undescribed(const struct mrf_buf *buf, const struct mrf_local_req *req, size_t i,
			     const char *what, unsigned code)
{
	struct buffer_name name;

	if (!(buf->space->mode & FI_MR_HMEM))
		return 0;
	return mrf_mr_device_refuse(req->iov[i].iov_base, req->inject, code,
				    name_buffer(&name, what, i));
}

int mrf_local_desc_check(const struct mrf_buf *buf, const struct mrf_local_req *req, size_t i,
			 const char *what, unsigned code)
{
	struct buffer_name name;
	bool local = buf->space->mode & FI_MR_LOCAL && !req->inject;
	uint64_t right = right_for(req);
	void *desc = req->desc ? req->desc[i] : NULL;
	enum fault fault;

	if (req->inject && !(buf->space->mode & FI_MR_HMEM))
		return 0;
	if (!desc && !local)
		return check_undescribed(buf, req, i, what, code);
	fault = look_at_desc(buf, NULL, desc, &req->iov[i], right, NULL);
	if (fault == NONE)
		return 0;
	/* The name is made last, because that takes longer than all checks above. */
	return refuse_desc(fault, code, name_buffer(&name, what, i), &req->iov[i], desc, right,
			   local);
}

static int refuse_buffer(enum fault fault, size_t i, const struct mrf_local_req *req)
{
	char name[32];

	snprintf(name, sizeof(name), "buffer %zu", req->number ? req->number[i] : i);
	return refuse_desc(fault, MRF_LOCAL_MISSING, name, &req->iov[i],
			   req->desc ? req->desc[i] : NULL, right_for(req), true);
}

int mrf_local_desc_use(const struct mrf_buf *buf, const struct mrf_local_req *req,
		       struct mrf_local *local, bool strict, uint64_t *covered)
{
	uint64_t right = right_for(req);
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
		if (fault != NONE && strict)
			return refuse_buffer(fault, i, req);
		if (fault != NONE)
			tell_ignored(buf, fault, &req->iov[i], value);
		if (fault != NONE)
			return 1;
	}
	local->kind = MRF_LOCAL_DESC;
	*covered = fit.bytes;
	return fit.unusable;
}

void *mrf_local_desc_memory(const struct mrf_buf *buf, const struct mrf_local *local)
{
	const struct mrf_mr *mr;
	uint64_t addr;

	if (local->ndesc != 1 || local->nsge != 1 || local->rest)
		return NULL;
	mr = mrf_desc_find(buf->space->pool, local->desc[0]);
	if (!mr || MRF_MR_GET(mr->nseg) != 1)
		return NULL;
	addr = MRF_MR_GET(mr->seg.addr) + (local->sge[0].addr - MRF_MR_GET(mr->seg.iova));
	return mrf_desc_still(mr, local->desc[0]) ? (void *)(uintptr_t)addr : NULL;
}

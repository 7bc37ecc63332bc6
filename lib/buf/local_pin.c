/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <unistd.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>
#include "base/page.h"
#include "buf/cache.h"
#include "buf/local_int.h"
#include "mr/demand/backs.h"

static void drop_cached(struct mrf_local *local)
{
	while (local->ncached)
		mrf_cache_put(local->cached[--local->ncached]);
}

/* 1: the cache cannot keep one of the buffers, and nothing is held. */
static int use_cache(const struct mrf_buf *buf, const struct mrf_local_req *req,
		     struct mrf_local *local)
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
		mrf_local_add(local, (uintptr_t)iov->iov_base, iov->iov_len,
			      mrf_cache_lkey(*entry));
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
	mrf_local_add(local, (uintptr_t)addr, len, mr->lkey);
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
 * shared mapping. The kernel makes the copy: where a load would end in a SIGSEGV, it returns an
 * error.
 */
int mrf_local_copy(const struct mrf_buf *buf, const struct mrf_local_req *req,
		   struct mrf_local *local)
{
	struct iovec to = { .iov_len = req->total };
	int ret = -FI_ENOMEM;

	/* At a page's start even the longest copy fits in one kernel MR. */
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

int mrf_local_pin(const struct mrf_buf *buf, const struct mrf_local_req *req,
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
	/* The cache keeps no entry for a small transfer that just found no slot. */
	if (req->total > buf->copy_max || local->rest)
		ret = use_cache(buf, req, local);
	if (ret == 1)
		ret = use_temp(buf, req, local);
	if (ret == -FI_EFAULT && !req->arrives)
		ret = mrf_local_copy(buf, req, local);
	return ret;
}

void mrf_local_unpin(struct mrf_local *local)
{
	drop_temp(local);
	drop_cached(local);
	if (local->kind == MRF_LOCAL_COPY)
		free(local->copy);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/user.h"
#include "buf/local.h"
#include "buf/rest.h"
#include "buf/stage.h"
#include "mr/desc.h"
#include "mr/device.h"

/* --- copies ------------------------------------------------------------------------------- */

/* The part of a buffer that is copied. */
struct piece {
	struct iovec there;
	void *desc;
	uint8_t *host;
	bool in; /* to the buffer */
	bool may_wait;
};

static int refuse_copy(const struct piece *piece, int err, const char *why)
{
	if (err == -FI_ECANCELED)
		return mrf_refuse(FI_ECANCELED, FI_LOG_EP_DATA, 4161,
				  "the region of the local buffer at %p was closed",
				  piece->there.iov_base);
	/* The runtime says that the memory was freed. */
	if (err == -FI_EINVAL)
		err = -FI_EFAULT;
	return mrf_refuse(-err, FI_LOG_EP_DATA, 4162,
			  "local buffer %p, %zu byte%s, cannot be %s: %s", piece->there.iov_base,
			  piece->there.iov_len, MRF_S(piece->there.iov_len),
			  piece->in ? "written" : "read", why);
}

static int copy_device(const struct mrf_buf *buf, const struct piece *piece)
{
	uint64_t addr = (uintptr_t)piece->there.iov_base, len = piece->there.iov_len;
	struct mrf_hmem_why why;
	int ret;

	if (piece->in)
		ret = mrf_mr_device_put(buf->space, piece->desc, addr, piece->host, len, &why);
	else
		ret = mrf_mr_device_get(buf->space, piece->desc, piece->host, addr, len, &why);
	return ret ? refuse_copy(piece, ret, why.text) : 0;
}

static int copy_host(const struct mrf_buf *buf, const struct piece *piece)
{
	int ret;

	if (piece->desc && !mrf_desc_live(buf->space, piece->desc))
		return refuse_copy(piece, -FI_ECANCELED, NULL);
	ret = piece->in ? mrf_user_put(&piece->there, 1, piece->host, piece->may_wait)
			: mrf_user_get(piece->host, &piece->there, 1);
	return ret && ret != -FI_EAGAIN
		       ? refuse_copy(piece, ret,
				     "it is not mapped, or not with the right that is needed")
		       : ret;
}

static int copy_piece(const struct mrf_buf *buf, const struct piece *piece)
{
	/*
	 * A descriptor whose region was closed is no longer found; using it will report
	 * that.
	 */
	if (piece->desc && mrf_desc_is_device(buf->space, piece->desc))
		return copy_device(buf, piece);
	return copy_host(buf, piece);
}

/*
 * piece: has what all pieces have in common, and the address of the bytes in the host's copy.
 */
static int copy_all(const struct mrf_buf *buf, const struct mrf_staged *all, uint64_t from,
		    uint64_t len, struct piece *piece)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < all->count && len && !ret; i++) {
		const struct iovec *iov = &all->iov[i];

		if (from >= iov->iov_len) {
			from -= iov->iov_len;
			continue;
		}
		piece->there.iov_base = (uint8_t *)iov->iov_base + from;
		piece->there.iov_len = mrf_min(iov->iov_len - from, len);
		piece->desc = all->desc ? all->desc[i] : NULL;
		ret = copy_piece(buf, piece);
		piece->host += piece->there.iov_len;
		len -= piece->there.iov_len;
		from = 0;
	}
	return ret;
}

int mrf_stage_gather(const struct mrf_buf *buf, const struct mrf_staged *all, uint64_t from,
		     uint64_t len, void *host)
{
	struct piece piece = { .host = host };

	return copy_all(buf, all, from, len, &piece);
}

int mrf_stage_scatter(const struct mrf_buf *buf, const struct mrf_staged *all, uint64_t from,
		      uint64_t len, const void *host, bool may_wait)
{
	struct piece piece = { .host = (void *)(uintptr_t)host, .in = true, .may_wait = may_wait };

	return copy_all(buf, all, from, len, &piece);
}

/* --- a transfer --------------------------------------------------------------------------- */

bool mrf_stage_needed(const struct mrf_buf *buf, const struct mrf_local_req *req)
{
	size_t i;

	for (i = 0; req->desc && i < req->count; i++) {
		if (req->iov[i].iov_len && mrf_desc_is_device(buf->space, req->desc[i]))
			return true;
	}
	return false;
}

static struct mrf_staged buffers_of(const struct mrf_local_rest *rest)
{
	return (struct mrf_staged){ rest->iov, rest->desc, rest->count };
}

static int take_inline(const struct mrf_buf *buf, const struct mrf_local_req *req,
		       struct mrf_local *local)
{
	const struct mrf_staged all = { req->iov, req->desc, req->count };

	local->kind = MRF_LOCAL_INLINE;
	local->nsge = 1;
	local->sge[0] =
		(struct mrf_sge){ .addr = (uintptr_t)local->data, .len = (uint32_t)req->total };
	return mrf_stage_gather(buf, &all, 0, req->total, local->data);
}

/* A slot serves as a ring for transfers that fit in it. */
static int take_memory(struct mrf_buf *buf, struct mrf_local_rest *rest)
{
	int ret;

	rest->size = MRF_BOUNCE_SIZE;
	if (rest->total <= MRF_BOUNCE_SIZE)
		rest->memory = mrf_bounce_take(&buf->bounce, &rest->lkey);
	if (rest->memory)
		return 0;
	ret = mrf_stage_ring_take(&buf->stage, buf->space->pd, &rest->ring);
	if (ret)
		return ret;
	rest->size = MRF_STAGE_RING;
	rest->memory = rest->ring->memory;
	rest->lkey = rest->ring->mr.lkey;
	return 0;
}

static uint8_t *place_of(const struct mrf_local_rest *rest, uint64_t pos)
{
	return (uint8_t *)rest->memory + pos % rest->size;
}

/*
 * How many bytes that arrive may be under way or not copied yet: more would come before the device has
 * something to do, where the processor carries out the transfer.
 */
static uint64_t under_way(const struct mrf_local_rest *rest)
{
	return rest->wide ? rest->size : mrf_min(rest->size, MRF_STAGE_UNDER_WAY);
}

/* Bytes to be sent: the first chunk has been copied when the call returns. */
static int fill_first(struct mrf_buf *buf, struct mrf_local *local)
{
	struct mrf_local_rest *rest = local->rest;
	uint64_t len = mrf_min(rest->total, MRF_STAGE_CHUNK);
	int ret;

	rest->from = rest->upto = 0;
	if (rest->arrives) {
		rest->upto = mrf_min(rest->total, under_way(rest));
		local->nuser = 1;
		return 0;
	}
	ret = mrf_stage_copy(buf, local, len);
	if (!ret)
		mrf_stage_end(local, len);
	return ret;
}

/* Nothing is held for it. */
static int take_apart(struct mrf_local_rest *rest, struct mrf_local *local)
{
	local->kind = MRF_LOCAL_APART;
	local->copy = local;
	local->rest = rest;
	rest->upto = rest->total;
	return 0;
}

/* The bytes of a message that find no memory here can wait for that of its line. */
static int take_staged(struct mrf_buf *buf, const struct mrf_local_req *req,
		       struct mrf_local_rest *rest, struct mrf_local *local)
{
	int ret = req->apart ? -FI_EAGAIN : take_memory(buf, rest);

	if (ret == -FI_EAGAIN && req->message)
		return take_apart(rest, local);
	if (ret) {
		free(rest);
		return ret;
	}
	local->kind = MRF_LOCAL_STAGED;
	local->copy = rest->memory;
	local->rest = rest;
	if (req->late || (req->behind && !req->arrives && rest->ring))
		return 0;
	return fill_first(buf, local);
}

int mrf_stage_take(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local)
{
	struct mrf_local_rest *rest;

	if (req->total <= MRF_LIMIT_INJECT && !req->arrives && !req->late)
		return take_inline(buf, req, local);
	rest = mrf_local_rest_new(req, 0);
	if (!rest)
		return mrf_refuse(FI_ENOMEM, FI_LOG_EP_DATA, 4163,
				  "there is no memory for a transfer");
	return take_staged(buf, req, rest, local);
}

void mrf_stage_give(struct mrf_buf *buf, struct mrf_local *local)
{
	struct mrf_local_rest *rest = local->rest;

	if (rest->ring)
		mrf_stage_ring_give(&buf->stage, rest->ring);
	else
		mrf_bounce_give(&buf->bounce, rest->memory);
}

/* --- step by step --------------------------------------------------------------------------- */

static uint64_t whole_chunks(const struct mrf_local_rest *rest, uint64_t pos)
{
	return pos == rest->total ? pos : pos - pos % MRF_STAGE_CHUNK;
}

/*
 * The length of the next chunk: of bytes to be sent, one for which there is room; of bytes that
 * arrive, one that has come completely. 0: there is none now.
 */
static uint64_t next_step(const struct mrf_local_rest *rest, uint64_t acked)
{
	uint64_t whole = whole_chunks(rest, acked), len;

	if (rest->arrives)
		return mrf_min(whole - mrf_min(rest->from, whole), MRF_STAGE_CHUNK);
	len = mrf_min(rest->total - rest->upto, MRF_STAGE_CHUNK);
	return rest->upto + len - whole <= rest->size ? len : 0;
}

bool mrf_stage_has_step(const struct mrf_local *local, uint64_t acked)
{
	return next_step(local->rest, acked);
}

/* The chunk that it replaces can no longer be posted. */
uint64_t mrf_stage_begin(struct mrf_local *local, uint64_t acked)
{
	struct mrf_local_rest *rest = local->rest;
	uint64_t len = next_step(rest, acked);

	if (!rest->arrives && rest->upto + len > rest->from + rest->size)
		rest->from = rest->upto + len - rest->size;
	return len;
}

void mrf_stage_widen(struct mrf_local *local)
{
	struct mrf_local_rest *rest = local->rest;

	if (local->kind != MRF_LOCAL_STAGED || !rest->arrives || rest->wide)
		return;
	rest->wide = true;
	rest->upto = mrf_min(rest->total, rest->from + rest->size);
}

int mrf_stage_copy(const struct mrf_buf *buf, const struct mrf_local *local, uint64_t len)
{
	const struct mrf_local_rest *rest = local->rest;
	const struct mrf_staged all = buffers_of(rest);

	if (rest->arrives)
		return mrf_stage_scatter(buf, &all, rest->from, len, place_of(rest, rest->from),
					 true);
	return mrf_stage_gather(buf, &all, rest->upto, len, place_of(rest, rest->upto));
}

int mrf_stage_part(const struct mrf_buf *buf, const struct mrf_local *local, uint64_t from,
		   uint64_t len, void *host)
{
	const struct mrf_staged all = buffers_of(local->rest);

	return local->rest->arrives ? mrf_stage_scatter(buf, &all, from, len, host, true)
				    : mrf_stage_gather(buf, &all, from, len, host);
}

void mrf_stage_end(struct mrf_local *local, uint64_t len)
{
	struct mrf_local_rest *rest = local->rest;

	if (rest->arrives) {
		rest->from += len;
		rest->upto = mrf_min(rest->total, rest->from + under_way(rest));
	} else {
		rest->upto += len;
	}
}

/* The part ends with its chunk, so that each chunk is acknowledged alone. */
int mrf_stage_sge(const struct mrf_local *local, uint64_t from, uint64_t *len, struct mrf_sge *sge)
{
	const struct mrf_local_rest *rest = local->rest;

	*len = mrf_min(*len, mrf_min(rest->upto - from, MRF_STAGE_CHUNK - from % MRF_STAGE_CHUNK));
	sge->addr = (uintptr_t)place_of(rest, from);
	sge->len = (uint32_t)*len;
	sge->lkey = rest->lkey;
	return 1;
}

int mrf_stage_deliver(const struct mrf_buf *buf, const struct mrf_local *local, bool may_wait)
{
	const struct mrf_local_rest *rest = local->rest;
	const struct mrf_staged all = buffers_of(rest);
	uint64_t at = rest->from, len;
	int ret = 0;

	for (; at < rest->total && !ret; at += len) {
		len = mrf_min(rest->total - at, rest->size - at % rest->size);
		ret = mrf_stage_scatter(buf, &all, at, len, place_of(rest, at), may_wait);
	}
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_rma(3): arguments become a request; all checks of them are here. */
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "contract/limits.h"
#include "ep/checks.h"
#include "ep/ep_ops.h"
#include "ep/rma_short.h"
#include "ep/tx/commit.h"
#include "ep/tx/access_op.h"
#include "ep/tx/entry.h"

#define MSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE | FI_REMOTE_CQ_DATA | FI_FENCE)

/* What injects is silent, and nothing else is. */
static const char *call_of(const struct mrf_req *req)
{
	if (!req->silent)
		return req->type->call;
	return req->flags & FI_REMOTE_CQ_DATA ? "fi_inject_writedata" : "fi_inject_write";
}

static int check_counts(const struct mrf_ep *ep, const struct mrf_req *req)
{
	const struct mrf_promise *promise = ep->domain->promise;
	int ret = mrf_check_iov(call_of(req), req->iov, req->count, promise->tx_iov);

	if (ret)
		return ret;
	if (!req->rma_count || req->rma_count > promise->rma_iov || !req->rma)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4004,
				  "%zu remote buffer%s at %p: there must be an array of 1 to %u",
				  req->rma_count, MRF_S(req->rma_count), (const void *)req->rma,
				  promise->rma_iov);
	return 0;
}

static int check_lengths(const struct mrf_ep *ep, const struct mrf_req *req)
{
	size_t max = ep->domain->promise->msg_size;
	size_t here = mrf_iov_total(req->iov, req->count), there = 0, i;

	for (i = 0; i < req->rma_count; i++) {
		if (__builtin_add_overflow(there, req->rma[i].len, &there) ||
		    !mrf_range_ok(req->rma[i].addr, req->rma[i].len))
			return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4005,
					  "remote buffer %zu: %#lx + %zu byte%s passes "
					  "the end of the address space",
					  i, (unsigned long)req->rma[i].addr, req->rma[i].len,
					  MRF_S(req->rma[i].len));
	}
	if (here != there)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4006,
				  "the local buffers have %zu byte%s and the remote ones "
				  "%zu: these numbers must be equal",
				  here, MRF_S(here), there);
	if (here > max)
		return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4007,
				  "%zu byte%s, but max_msg_size is %zu", here, MRF_S(here), max);
	return mrf_check_injected(ep, call_of(req), req->flags, here);
}

static int check_flags(const struct mrf_ep *ep, const struct mrf_req *req)
{
	uint64_t known = MSG_FLAGS;
	int ret;

	if (!req->type->data)
		known &= ~(FI_INJECT | FI_COMMIT_COMPLETE | FI_REMOTE_CQ_DATA);
	ret = mrf_check_flags(call_of(req), req->flags, known);
	return ret ? ret : mrf_check_data(ep, call_of(req), req->flags);
}

static int check_state(struct mrf_ep *ep, const struct mrf_req *req)
{
	uint64_t cap = mrf_kind_flag(req->type->kind);
	int ret = mrf_check_enabled(ep, call_of(req));

	if (ret)
		return ret;
	if ((ep->caps & (cap | FI_RMA)) != (cap | FI_RMA))
		return mrf_refuse(FI_EOPNOTSUPP, FI_LOG_EP_DATA, 4016,
				  "the endpoint was opened without %s",
				  !(ep->caps & FI_RMA) ? "FI_RMA"
				  : cap == FI_READ     ? "FI_READ"
						       : "FI_WRITE");
	return 0;
}

static int check(struct mrf_ep *ep, const struct mrf_req *req)
{
	int ret = mrf_obj_check(&ep->obj, call_of(req));

	if (!ret)
		ret = check_state(ep, req);
	if (!ret)
		ret = check_flags(ep, req);
	if (!ret)
		ret = check_counts(ep, req);
	return ret ? ret : check_lengths(ep, req);
}

/* The local bytes come before the lock, because they may have to be pinned or read in. */
int mrf_rma_submit(struct mrf_ep *ep, const struct mrf_req *req)
{
	struct mrf_op *op;
	int ret = check(ep, req);

	if (mrf_unlikely(ret))
		return ret;
	ret = mrf_entry_begin(ep, MRF_CONN_ACCESS, req->addr, &op);
	if (ret)
		return ret;
	ret = mrf_entry_fill(ep, req, op);
	if (!ret && mrf_unlikely(req->flags & FI_COMMIT_COMPLETE && op->total))
		mrf_commit_begin(op);
	return mrf_entry_start(ep, MRF_CONN_ACCESS, req->addr, op, ret);
}

/* The flags of calls without flags. An access is matched with nothing. */
static uint64_t default_access_flags(const struct mrf_ep *ep)
{
	return ep->op_flags & ~FI_MATCH_COMPLETE;
}

/* fi_read and fi_write the long way, and the vector forms: the endpoint's op_flags apply. */
static ssize_t submit_simple(struct fid_ep *fid, const struct mrf_op_type *type,
			     const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
			     uint64_t remote, uint64_t key, void *context)
{
	struct mrf_ep *ep = mrf_ep_of(&fid->fid);
	struct fi_rma_iov rma = { .addr = remote,
				  .len = mrf_iov_total(iov,
						       iov && count <= MRF_LIMIT_IOV ? count : 0),
				  .key = key };
	struct mrf_req req = { .type = type,
			       .iov = iov,
			       .desc = desc,
			       .count = count,
			       .rma = &rma,
			       .rma_count = 1,
			       .addr = addr,
			       .context = context,
			       .flags = default_access_flags(ep) };

	if (!type->data)
		req.flags &= ~(FI_INJECT | FI_COMMIT_COMPLETE);
	return mrf_rma_submit(ep, &req);
}

static ssize_t ep_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr,
		       uint64_t remote, uint64_t key, void *context)
{
	const struct mrf_rma_one one = { MRF_OP_READ, (uintptr_t)buf, len,  desc, addr, remote,
					 key,	      context,	      false };
	struct iovec iov;

	if (mrf_likely(mrf_rma_short(mrf_ep_of(&fid->fid), &one)))
		return 0;
	iov.iov_base = buf;
	iov.iov_len = len;
	return submit_simple(fid, &mrf_op_read, &iov, &desc, 1, addr, remote, key, context);
}

static ssize_t ep_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr,
			uint64_t remote, uint64_t key, void *context)
{
	const struct mrf_rma_one one = { MRF_OP_WRITE, (uintptr_t)buf, len,  desc, addr, remote,
					 key,	       context,	       false };
	struct iovec iov;

	if (mrf_likely(mrf_rma_short(mrf_ep_of(&fid->fid), &one)))
		return 0;
	iov.iov_base = (void *)(uintptr_t)buf;
	iov.iov_len = len;
	return submit_simple(fid, &mrf_op_write, &iov, &desc, 1, addr, remote, key, context);
}

static ssize_t ep_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t addr, uint64_t remote, uint64_t key, void *context)
{
	return submit_simple(ep, &mrf_op_read, iov, desc, count, addr, remote, key, context);
}

static ssize_t ep_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t addr, uint64_t remote, uint64_t key, void *context)
{
	return submit_simple(ep, &mrf_op_write, iov, desc, count, addr, remote, key, context);
}

static ssize_t rma_message(struct fid_ep *fid, const struct mrf_op_type *type,
			   const struct fi_msg_rma *msg, uint64_t flags)
{
	struct mrf_req req = { .type = type, .flags = flags };
	int ret = mrf_check_msg(type->call, msg);

	if (ret)
		return ret;
	req.iov = msg->msg_iov;
	req.desc = msg->desc;
	req.count = msg->iov_count;
	req.rma = msg->rma_iov;
	req.rma_count = msg->rma_iov_count;
	req.addr = msg->addr;
	req.context = msg->context;
	req.data = msg->data;
	return mrf_rma_submit(mrf_ep_of(&fid->fid), &req);
}

static ssize_t ep_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, &mrf_op_read, msg, flags);
}

static ssize_t ep_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, &mrf_op_write, msg, flags);
}

/* Writes one buffer, with the flags and data that the call adds. */
static ssize_t write_one(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t addr, uint64_t remote, uint64_t key, struct mrf_req *req)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };

	req->type = &mrf_op_write;
	req->iov = &iov;
	req->desc = &desc;
	req->count = 1;
	req->rma = &rma;
	req->rma_count = 1;
	req->addr = addr;
	return mrf_rma_submit(mrf_ep_of(&fid->fid), req);
}

static ssize_t ep_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t addr,
			 uint64_t remote, uint64_t key)
{
	const struct mrf_rma_one one = { .kind = MRF_OP_WRITE,
					 .buf = (uintptr_t)buf,
					 .len = len,
					 .addr = addr,
					 .remote = remote,
					 .key = key,
					 .silent = true };
	struct mrf_req req = { .flags = FI_INJECT, .silent = true };

	if (mrf_likely(mrf_rma_short_inject(mrf_ep_of(&ep->fid), &one)))
		return 0;
	return write_one(ep, buf, len, NULL, addr, remote, key, &req);
}

static ssize_t ep_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t addr, uint64_t remote, uint64_t key,
			    void *context)
{
	struct mrf_req req = { .flags = default_access_flags(mrf_ep_of(&ep->fid)) |
					FI_REMOTE_CQ_DATA,
			       .data = data,
			       .context = context };

	return write_one(ep, buf, len, desc, addr, remote, key, &req);
}

static ssize_t ep_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			     fi_addr_t addr, uint64_t remote, uint64_t key)
{
	struct mrf_req req = { .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
			       .data = data,
			       .silent = true };

	return write_one(ep, buf, len, NULL, addr, remote, key, &req);
}

struct fi_ops_rma mrf_ep_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = ep_read,
	.readv = ep_readv,
	.readmsg = ep_readmsg,
	.write = ep_write,
	.writev = ep_writev,
	.writemsg = ep_writemsg,
	.inject = ep_inject,
	.writedata = ep_writedata,
	.injectdata = ep_injectdata,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shortest way for the most common access: one registered buffer, a key whose rkey is known, a
 * connection that is ready, nothing that waits. What op.c, resolve.c and peer.c would decide in
 * a thousand instructions is decided here in a quarter of that. The operation that it leaves
 * behind is the one that they would have made, so everything that follows a failure is theirs.
 * The functions are inline so that the kind of access is known when they are compiled.
 */
#include <stdlib.h>
#include "base/iov.h"
#include "ep/access.h"
#include "ep/short.h"
#include "mr/desc.h"

struct request {
	enum mrf_op_kind kind;
	uintptr_t buf;
	size_t len;
	void *desc;
	fi_addr_t addr;
	uint64_t remote;
	uint64_t key;
	void *context;
};

/* The local and the remote end of an access. */
struct ends {
	uint64_t iova;
	uint64_t remote_addr;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t event; /* of a write to a region that counts, else 0 */
};

static inline void fill(struct mrf_ep *ep, struct mrf_op *op, const struct request *req,
			const struct ends *ends)
{
	op->type = req->kind == MRF_OP_READ ? &mrf_op_read : &mrf_op_write;
	op->comp_flags = FI_RMA | (req->kind == MRF_OP_READ ? FI_READ : FI_WRITE);
	op->resolved = true;
	op->silent = ep->short_silent;
	op->inflight = 1;
	op->stamp = ++ep->clock;
	op->total = req->len;
	op->pos = req->len;
	op->context = req->context;
	op->nsge = 1;
	op->nrma = 1;
	op->sge[0].addr = ends->iova;
	op->sge[0].len = (uint32_t)req->len;
	op->sge[0].lkey = ends->lkey;
	op->rma[0].addr = req->remote;
	op->rma[0].len = req->len;
	op->rma[0].key = req->key;
	op->desc[0] = req->desc;
	op->ndesc = 1;
}

/*
 * A write of a few bytes: it costs less to put them into the work request than to have the
 * kernel look up their registration.
 */
#define FEW_BYTES 64

static inline int send_off(struct mrf_conn *conn, struct mrf_op *op, const struct request *req,
			   const struct ends *ends)
{
	struct mrf_sge here = { .addr = req->buf, .len = (uint32_t)req->len };
	bool few = req->kind == MRF_OP_WRITE && req->len <= FEW_BYTES;

	if (req->kind == MRF_OP_WRITE && ends->event) {
		op->told = true;
		return mrf_vconn_write_imm(conn->vconn, conn->owner.id, few,
					   few ? &here : op->sge, ends->remote_addr, ends->rkey,
					   ends->event);
	}
	return mrf_vconn_access(conn->vconn, conn->owner.id,
				req->kind == MRF_OP_READ ? MRF_VWR_READ : MRF_VWR_WRITE, few,
				few ? &here : op->sge, ends->remote_addr, ends->rkey);
}

static inline bool post(struct mrf_ep *ep, struct mrf_peer *peer, const struct request *req,
			struct ends *ends)
{
	struct mrf_op *op;
	int ret;

	if (mrf_unlikely(!mrf_short_aim(peer, req->kind, req->key, req->remote, req->len,
					&ends->rkey, &ends->remote_addr, &ends->event)))
		return false;
	op = mrf_short_take(ep);
	if (mrf_unlikely(!op))
		return false;
	fill(ep, op, req, ends);
	op->peer = peer;
	ret = send_off(peer->conn, op, req, ends);
	if (mrf_unlikely(ret && ret != -FI_EACCES)) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		return false;
	}
	if (mrf_unlikely(ret))
		mrf_conn_denied(peer->conn);
	mrf_conn_posted_of(ep, peer->conn, op, req->len);
	ep->nops++;
	return true;
}

/* False: nothing was done, go the long way. */
static inline bool try_short(struct mrf_ep *ep, const struct request *req)
{
	struct ends ends;
	struct mrf_peer *peer;
	bool posted;

	if (!req->len || req->len > ep->short_max[req->kind] ||
	    !mrf_fork_ours(ep->obj.owner) ||
	    !mrf_range_ok(req->remote, req->len) ||
	    !mrf_desc_local(&ep->domain->space, req->desc,
			    req->kind == MRF_OP_READ ? FI_READ : FI_WRITE, req->buf, req->len,
			    &ends.iova, &ends.lkey))
		return false;
	mrf_lock_take(&ep->lock);
	peer = mrf_short_peer(ep, req->addr);
	posted = peer && post(ep, peer, req, &ends);
	mrf_lock_release(&ep->lock);
	return posted;
}

ssize_t mrf_ep_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr,
		    uint64_t remote, uint64_t key, void *context)
{
	const struct request req = { MRF_OP_READ, (uintptr_t)buf, len, desc, addr, remote, key,
				     context };
	struct iovec iov;

	if (mrf_likely(try_short(mrf_container_of(fid, struct mrf_ep, fid), &req)))
		return 0;
	iov.iov_base = buf;
	iov.iov_len = len;
	return mrf_ep_simple(fid, &mrf_op_read, &iov, &desc, 1, addr, remote, key,
			     context);
}

ssize_t mrf_ep_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr,
		     uint64_t remote, uint64_t key, void *context)
{
	const struct request req = { MRF_OP_WRITE, (uintptr_t)buf, len, desc, addr, remote, key,
				     context };
	struct iovec iov;

	if (mrf_likely(try_short(mrf_container_of(fid, struct mrf_ep, fid), &req)))
		return 0;
	iov.iov_base = (void *)(uintptr_t)buf;
	iov.iov_len = len;
	return mrf_ep_simple(fid, &mrf_op_write, &iov, &desc, 1, addr, remote, key,
			     context);
}

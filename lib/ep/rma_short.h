/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path for the most common access: one registered buffer, a key whose rkey is
 * known, a connection that is ready, an empty queue. It decides in a quarter of the
 * instructions what op.c, resolve.c and peer.c decide in a thousand. It leaves the same
 * operation behind that they would have made, so they handle every failure. For rma.c
 * alone; inline, so that the kind of access is known at compile time. The functions that
 * end in _locked are called with ep->lock held.
 */
#ifndef MRF_EP_RMA_SHORT_H
#define MRF_EP_RMA_SHORT_H

#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "ep/short.h"
#include "ep/tx/access.h"
#include "mr/desc.h"

struct mrf_rma_one {
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
struct mrf_rma_ends {
	uint64_t iova;
	uint64_t remote_addr;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t event; /* for a write to a region that counts writes; otherwise 0 */
};

static inline void mrf_rma_fill_locked(struct mrf_ep *ep, struct mrf_op *op,
				       const struct mrf_rma_one *one,
				       const struct mrf_rma_ends *ends)
{
	mrf_lock_held(&ep->lock);
	op->type = one->kind == MRF_OP_READ ? &mrf_op_read : &mrf_op_write;
	op->comp_flags = FI_RMA | (one->kind == MRF_OP_READ ? FI_READ : FI_WRITE);
	op->resolved = true;
	op->silent = ep->short_silent;
	op->inflight = 1;
	op->stamp = ++ep->clock;
	op->total = one->len;
	op->pos = one->len;
	op->context = one->context;
	op->local.nsge = 1;
	op->nrma = 1;
	op->local.sge[0].addr = ends->iova;
	op->local.sge[0].len = (uint32_t)one->len;
	op->local.sge[0].lkey = ends->lkey;
	op->rma[0].addr = one->remote;
	op->rma[0].len = one->len;
	op->rma[0].key = one->key;
	op->local.desc[0] = one->desc;
	op->local.ndesc = 1;
}

/*
 * Up to this many bytes it costs less to put a write's data into the work request than to
 * have the kernel look up their registration.
 */
#define MRF_RMA_FEW_BYTES 64

static inline int mrf_rma_send_off_locked(struct mrf_conn *conn, struct mrf_op *op,
					  const struct mrf_rma_one *one,
					  const struct mrf_rma_ends *ends)
{
	struct mrf_sge here = { .addr = one->buf, .len = (uint32_t)one->len };
	bool few = one->kind == MRF_OP_WRITE && one->len <= MRF_RMA_FEW_BYTES;
	enum mrf_vwr_op vwr_op = one->kind == MRF_OP_READ ? MRF_VWR_READ : MRF_VWR_WRITE;

	mrf_lock_held(&conn->peer->ep->lock);
	if (one->kind == MRF_OP_WRITE && ends->event) {
		vwr_op = MRF_VWR_WRITE_IMM;
		op->told = true;
	}
	return mrf_vconn_access(conn->vconn, conn->owner.id, vwr_op, few,
				few ? &here : op->local.sge, ends->remote_addr, ends->rkey,
				ends->event);
}

static inline bool mrf_rma_post_locked(struct mrf_ep *ep, struct mrf_peer *peer,
				       const struct mrf_rma_one *one, struct mrf_rma_ends *ends)
{
	struct mrf_op *op;
	int ret;

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(!mrf_short_aim_locked(peer, one->kind, one->key, one->remote, one->len,
					       &ends->rkey, &ends->remote_addr, &ends->event)))
		return false;
	op = mrf_short_take_locked(ep);
	if (mrf_unlikely(!op))
		return false;
	mrf_rma_fill_locked(ep, op, one, ends);
	op->peer = peer;
	ret = mrf_rma_send_off_locked(peer->conn, op, one, ends);
	if (mrf_unlikely(ret && ret != -FI_EACCES)) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		return false;
	}
	if (mrf_unlikely(ret))
		mrf_conn_denied_locked(peer->conn);
	mrf_conn_posted_of_locked(ep, peer->conn, op, one->len);
	ep->nops++;
	return true;
}

/* False: nothing was done; take the general path. */
static inline bool mrf_rma_short(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	struct mrf_rma_ends ends;
	struct mrf_peer *peer;
	bool posted;

	if (!one->len || one->len > ep->short_max[one->kind] || !mrf_fork_ours(ep->obj.owner) ||
	    !mrf_range_ok(one->remote, one->len) ||
	    !mrf_desc_local(&ep->domain->space, one->desc,
			    one->kind == MRF_OP_READ ? FI_READ : FI_WRITE, one->buf, one->len,
			    &ends.iova, &ends.lkey))
		return false;
	mrf_lock_take(&ep->lock);
	peer = mrf_short_peer_locked(ep, one->addr);
	posted = peer && mrf_rma_post_locked(ep, peer, one, &ends);
	mrf_lock_release(&ep->lock);
	return posted;
}

#endif

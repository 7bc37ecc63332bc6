/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path for the most common access: one buffer, registered or small, a key whose rkey is
 * known, a connection that is ready, an empty queue. It decides in a quarter of the
 * instructions what entry.c, resolve.c and peer_queue.c decide in a thousand. It leaves the same
 * operation behind that they would have made, so they handle every failure.
 * tests/unit/t_short.c compares the two. For rma_calls.c alone; inline, so that the kind of access is known at compile time. The functions that
 * end in _locked are called with ep->lock held.
 */
#ifndef MRF_EP_RMA_SHORT_H
#define MRF_EP_RMA_SHORT_H

#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/user.h"
#include "ep/short.h"
#include "ep/tx/access_op.h"
#include "monitor/life.h"
#include "mr/desc.h"

struct mrf_rma_one {
	enum mrf_op_kind kind; /* READ or WRITE */
	uintptr_t buf;
	size_t len;
	void *desc;
	fi_addr_t addr;
	uint64_t remote;
	uint64_t key;
	void *context;
	bool silent; /* no completion, whatever the endpoint does with others */
};

/* The local and the remote end of an access. */
struct mrf_rma_ends {
	uint64_t iova;
	uint64_t remote_addr;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t event;		  /* for a write to a region that counts writes; otherwise 0 */
	enum mrf_local_kind kind; /* DESC, INLINE or BOUNCE */
	void *bytes;		  /* INLINE: the copy; BOUNCE: the slot */
};

/*
 * Up to this many bytes it costs less to put a write's data into the work request than to
 * have the kernel look up their registration.
 */
#define MRF_RMA_FEW_BYTES MRF_LIMIT_INJECT

/* As buf/local.c would have left it. */
static inline void mrf_rma_fill_unregistered_locked(struct mrf_op *op,
						    const struct mrf_rma_one *one,
						    const struct mrf_rma_ends *ends)
{
	op->local.kind = ends->kind;
	if (ends->kind == MRF_LOCAL_INLINE) {
		memcpy(op->local.data, ends->bytes, one->len);
		op->local.sge[0].addr = (uintptr_t)op->local.data;
		return;
	}
	op->local.copy = ends->bytes;
	if (mrf_kind_arrives(one->kind)) {
		op->local.nuser = 1;
		op->local.user[0].iov_base = (void *)one->buf;
		op->local.user[0].iov_len = one->len;
	}
}

static inline void mrf_rma_fill_locked(struct mrf_ep *ep, struct mrf_op *op,
				       const struct mrf_rma_one *one,
				       const struct mrf_rma_ends *ends)
{
	op->type = mrf_kind_arrives(one->kind) ? &mrf_op_read : &mrf_op_write;
	op->comp_flags = FI_RMA | mrf_kind_flag(one->kind);
	op->resolved = true;
	op->silent = one->silent || ep->short_silent;
	op->plain = !op->silent && ep->tx_cq && mrf_local_is_bare(ends->kind);
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
	if (ends->kind != MRF_LOCAL_DESC) {
		mrf_rma_fill_unregistered_locked(op, one, ends);
		return;
	}
	op->local.desc[0] = one->desc;
	op->local.ndesc = 1;
}

static inline int mrf_rma_send_off_locked(struct mrf_conn *conn, struct mrf_op *op,
					  const struct mrf_rma_one *one,
					  const struct mrf_rma_ends *ends)
{
	/* Memory behind a descriptor is mapped; of other memory there is a copy. */
	struct mrf_sge here = { .addr = ends->kind == MRF_LOCAL_DESC ? one->buf
								     : (uintptr_t)ends->bytes,
				.len = (uint32_t)one->len };
	bool arrives = mrf_kind_arrives(one->kind);
	bool few = !arrives && one->len <= MRF_RMA_FEW_BYTES;
	enum mrf_vwr_op vwr_op = arrives ? MRF_VWR_READ : MRF_VWR_WRITE;

	if (!arrives && ends->event) {
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
	mrf_conn_posted_of_locked(ep, peer->conn, op, (uint32_t)one->len, one->len);
	ep->nops++;
	return true;
}

static inline bool mrf_rma_go(struct mrf_ep *ep, const struct mrf_rma_one *one,
			      struct mrf_rma_ends *ends)
{
	struct mrf_peer *peer;
	bool posted;

	mrf_lock_take(&ep->lock);
	peer = mrf_short_peer_locked(ep, MRF_CONN_ACCESS, one->addr);
	posted = peer && mrf_rma_post_locked(ep, peer, one, ends);
	mrf_lock_release(&ep->lock);
	return posted;
}

/*
 * The bytes of a write are copied before they are sent. With FI_HMEM what is injected may be device
 * memory by mistake.
 */
static inline bool mrf_rma_copy(const struct mrf_ep *ep, void *to, const struct mrf_rma_one *one)
{
	const struct iovec from = { (void *)one->buf, one->len };

	if (mrf_kind_arrives(one->kind))
		return true;
	return mrf_likely(!(ep->domain->space.mode & FI_MR_HMEM)) ? !mrf_user_take(to, &from, 1)
								  : !mrf_user_get(to, &from, 1);
}

/* A few bytes go as a copy. */
static inline bool mrf_rma_go_few(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	uint8_t few[MRF_RMA_FEW_BYTES];
	struct mrf_rma_ends ends = { .kind = MRF_LOCAL_INLINE, .bytes = few };

	return mrf_rma_copy(ep, few, one) && mrf_rma_go(ep, one, &ends);
}

/* By way of a slot, if one is free. */
static inline bool mrf_rma_go_slot(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	struct mrf_rma_ends ends = { .kind = MRF_LOCAL_BOUNCE };

	if (one->len > ep->buf.copy_max)
		return false;
	ends.bytes = mrf_bounce_try(&ep->buf.bounce, &ends.lkey);
	if (!ends.bytes)
		return false;
	ends.iova = (uintptr_t)ends.bytes;
	if (mrf_rma_copy(ep, ends.bytes, one) && mrf_rma_go(ep, one, &ends))
		return true;
	mrf_bounce_give(&ep->buf.bounce, ends.bytes);
	return false;
}

/* A buffer without a descriptor that can be used. */
static inline bool mrf_rma_short_unregistered(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	if (ep->domain->space.mode & (FI_MR_LOCAL | FI_MR_HMEM))
		return false;
	mrf_monitor_hook();
	if (!mrf_kind_arrives(one->kind) && one->len <= MRF_RMA_FEW_BYTES)
		return mrf_rma_go_few(ep, one);
	return mrf_rma_go_slot(ep, one);
}

static inline bool mrf_rma_is_short(const struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	return one->len && one->len <= ep->short_max[one->kind] && mrf_fork_ours(ep->obj.owner) &&
	       mrf_range_ok(one->remote, one->len) && mrf_range_ok(one->buf, one->len);
}

/* False: nothing was done; take the general path. */
static inline bool mrf_rma_short(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	struct mrf_rma_ends ends;

	if (!mrf_rma_is_short(ep, one))
		return false;
	if (mrf_desc_local(&ep->domain->space, one->desc, mrf_kind_flag(one->kind), one->buf,
			   one->len, &ends.iova, &ends.lkey)) {
		ends.kind = MRF_LOCAL_DESC;
		return mrf_rma_go(ep, one, &ends);
	}
	return mrf_rma_short_unregistered(ep, one);
}

/* The same for injected bytes, which need no descriptor in any mode. */
static inline bool mrf_rma_short_inject(struct mrf_ep *ep, const struct mrf_rma_one *one)
{
	if (one->len > MRF_RMA_FEW_BYTES || !mrf_rma_is_short(ep, one))
		return false;
	mrf_monitor_hook();
	return mrf_rma_go_few(ep, one);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path for one native element, built like rma_short.h. It leaves the same
 * operation behind that atomic_op.c would have made. For atomic.c alone; inline, so that
 * the family is known at compile time. The functions that end in _locked are called with
 * ep->lock held.
 */
#ifndef MRF_EP_ATOMIC_SHORT_H
#define MRF_EP_ATOMIC_SHORT_H

#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "ep/short.h"
#include "ep/tx/atomic_op.h"
#include "monitor/life.h"
#include "mr/desc.h"

/* The arguments of a call with one buffer of each kind. */
struct mrf_atomic_one {
	enum mrf_atomic_family family;
	enum fi_datatype datatype;
	enum fi_op op;
	const void *operand;
	const void *compare;
	void *result;
	void *operand_desc;
	void *compare_desc;
	void *result_desc;
	fi_addr_t addr;
	uint64_t remote;
	uint64_t key;
	void *context;
};

/*
 * Copies an operand and a comparand from addresses that may not be mapped. compare NULL:
 * there is no comparand. False: one of them is not mapped; the general path reports that.
 */
bool mrf_one_copy(const void *operand, const void *compare, uint64_t copy[2]);

static MRF_ALWAYS_INLINE bool mrf_one_is_native(const struct mrf_atomic_one *one)
{
	if (one->datatype != FI_UINT64 && one->datatype != FI_INT64)
		return false;
	switch (one->family) {
	case MRF_ATOMIC_BASE:
		return one->op == FI_SUM;
	case MRF_ATOMIC_FETCH:
		return one->op == FI_SUM && one->result;
	default:
		return one->op == FI_CSWAP && one->result && one->compare;
	}
}

/*
 * Where the values are that go to the peer; compare is used only if the family has a
 * comparand.
 */
struct mrf_one_values {
	const void *operand, *compare;
};

static inline bool mrf_one_desc_fits(const struct mrf_mr_space *space, const void *desc,
				     uint64_t right, const void *buf)
{
	return mrf_desc_covers(space, desc, right, (uintptr_t)buf, sizeof(uint64_t));
}

/* With FI_MR_LOCAL each buffer has to be inside the region of its descriptor. */
static MRF_ALWAYS_INLINE bool mrf_one_descs_fit(const struct mrf_ep *ep,
						const struct mrf_atomic_one *one)
{
	const struct mrf_mr_space *space = &ep->domain->space;

	if (!(space->mode & FI_MR_LOCAL))
		return true;
	return mrf_one_desc_fits(space, one->operand_desc, FI_WRITE, one->operand) &&
	       (one->family != MRF_ATOMIC_COMPARE ||
		mrf_one_desc_fits(space, one->compare_desc, FI_WRITE, one->compare)) &&
	       (one->family == MRF_ATOMIC_BASE ||
		mrf_one_desc_fits(space, one->result_desc, FI_READ, one->result));
}

static MRF_ALWAYS_INLINE void mrf_one_fill_result_locked(const struct mrf_ep *ep, struct mrf_op *op,
							 const struct mrf_atomic_one *one)
{
	op->local.nuser = 1;
	op->local.user[0].iov_base = one->result;
	op->local.user[0].iov_len = sizeof(uint64_t);
	if (ep->domain->space.mode & FI_MR_LOCAL) {
		op->local.ndesc = 1;
		op->local.desc[0] = one->result_desc;
	}
}

static MRF_ALWAYS_INLINE void mrf_one_fill_locked(struct mrf_ep *ep, struct mrf_op *op,
						  const struct mrf_atomic_one *one,
						  const struct mrf_one_values *from)
{
	op->type = &mrf_op_atomic;
	op->local.kind = MRF_LOCAL_INLINE;
	op->comp_flags = FI_ATOMIC | (one->family == MRF_ATOMIC_BASE ? FI_WRITE : FI_READ);
	op->atomic.family = (uint8_t)one->family;
	op->atomic.datatype = (uint8_t)one->datatype;
	op->atomic.op = (uint8_t)one->op;
	op->atomic.size = sizeof(uint64_t);
	op->atomic.native = true;
	op->atomic.landed = true;
	op->resolved = true;
	op->silent = ep->short_silent;
	op->inflight = 1;
	op->stamp = ++ep->clock;
	op->total = sizeof(uint64_t);
	op->pos = sizeof(uint64_t);
	op->context = one->context;
	op->nrma = 1;
	op->rma[0].addr = one->remote;
	op->rma[0].len = sizeof(uint64_t);
	op->rma[0].key = one->key;
	memcpy(op->local.data, from->operand, sizeof(uint64_t));
	if (one->family == MRF_ATOMIC_COMPARE)
		memcpy(op->local.data + sizeof(uint64_t), from->compare, sizeof(uint64_t));
	if (one->family != MRF_ATOMIC_BASE)
		mrf_one_fill_result_locked(ep, op, one);
}

static inline int mrf_one_swap_locked(struct mrf_conn *conn, const struct mrf_op *op,
				      struct mrf_sge *sge, uint32_t rkey, uint64_t remote_addr)
{
	struct mrf_vwr wr = { .wr_id = conn->owner.id,
			      .op = MRF_VWR_CMP_SWP,
			      .nsge = 1,
			      .sge = sge,
			      .remote_addr = remote_addr,
			      .rkey = rkey };

	memcpy(&wr.operand, op->local.data, sizeof(wr.operand));
	memcpy(&wr.compare, op->local.data + sizeof(wr.operand), sizeof(wr.compare));
	return mrf_vconn_post(conn->vconn, &wr);
}

static MRF_ALWAYS_INLINE int mrf_one_send_off_locked(struct mrf_ep *ep, struct mrf_conn *conn,
						     const struct mrf_op *op,
						     enum mrf_atomic_family family, uint32_t rkey,
						     uint64_t remote_addr)
{
	struct mrf_sge sge = { .addr = (uintptr_t)ep->cells->cell[op->number],
			       .len = sizeof(uint64_t),
			       .lkey = ep->cells->mr.lkey };
	uint64_t add;

	if (family == MRF_ATOMIC_COMPARE)
		return mrf_one_swap_locked(conn, op, &sge, rkey, remote_addr);
	memcpy(&add, op->local.data, sizeof(add));
	return mrf_vconn_fetch_add(conn->vconn, conn->owner.id, &sge, remote_addr, rkey, add);
}

static MRF_ALWAYS_INLINE bool mrf_one_post_locked(struct mrf_ep *ep, struct mrf_peer *peer,
						  const struct mrf_atomic_one *one,
						  const struct mrf_one_values *from)
{
	uint64_t remote_addr;
	struct mrf_op *op;
	uint32_t rkey, event;
	int ret;

	mrf_lock_held(&ep->lock);
	/* Where the target counts writes, its agent has to carry the operation out. */
	if (!mrf_short_aim_locked(peer, MRF_OP_ATOMIC, one->key, one->remote, sizeof(uint64_t),
				  &rkey, &remote_addr, &event) ||
	    remote_addr % sizeof(uint64_t) || event)
		return false;
	op = mrf_short_take_locked(ep);
	if (mrf_unlikely(!op))
		return false;
	mrf_one_fill_locked(ep, op, one, from);
	op->peer = peer;
	ret = mrf_one_send_off_locked(ep, peer->conn, op, one->family, rkey, remote_addr);
	if (mrf_unlikely(ret && ret != -FI_EACCES)) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		return false;
	}
	if (mrf_unlikely(ret))
		mrf_conn_denied_locked(peer->conn);
	mrf_conn_posted_of_locked(ep, peer->conn, op, sizeof(uint64_t), sizeof(uint64_t));
	ep->nops++;
	return true;
}

static MRF_ALWAYS_INLINE bool mrf_atomic_short(struct mrf_ep *ep, const struct mrf_atomic_one *one)
{
	struct mrf_one_values from = { one->operand, one->compare };
	uint64_t copy[2];
	struct mrf_peer *peer;
	bool posted;

	if (!mrf_one_is_native(one) || !one->operand || !ep->short_atomic[one->family] ||
	    !mrf_fork_ours(ep->obj.owner) || !mrf_range_ok(one->remote, sizeof(uint64_t)) ||
	    !mrf_range_ok((uintptr_t)one->result, sizeof(uint64_t)) || !mrf_one_descs_fit(ep, one))
		return false;
	/* Under FI_MR_LOCAL the values are inside regions, so their memory is there. */
	if (!(ep->domain->space.mode & FI_MR_LOCAL)) {
		mrf_monitor_hook();
		if (!mrf_one_copy(from.operand,
				  one->family == MRF_ATOMIC_COMPARE ? from.compare : NULL, copy))
			return false;
		from = (struct mrf_one_values){ &copy[0], &copy[1] };
	}
	mrf_lock_take(&ep->lock);
	peer = ep->cells ? mrf_short_peer_locked(ep, MRF_CONN_ACCESS, one->addr) : NULL;
	posted = peer && mrf_one_post_locked(ep, peer, one, &from);
	mrf_lock_release(&ep->lock);
	return posted;
}

#endif

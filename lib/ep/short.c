/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common access, cut short: what op.c, resolve.c and peer.c would decide in a thousand
 * instructions is decided here in a quarter of that. The operation that it leaves behind is the one
 * that they would have made, so everything that follows a failure is theirs.
 */
#include <stdlib.h>
#include <string.h>
#include "base/iov.h"
#include "ep/peer.h"

/* Flags of the endpoint that change nothing here: RC acknowledges what has been delivered. */
#define PLAIN_FLAGS                                                                      \
	(FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

static bool local_fits(const struct mrf_ep *ep, const struct mrf_short *req,
		       struct mrf_desc *desc)
{
	uint64_t right = req->kind == MRF_OP_READ ? FI_READ : FI_WRITE;

	return mrf_desc_get(&ep->domain->space, req->desc, desc) && desc->nseg == 1 &&
	       (desc->access & right) &&
	       mrf_range_inside((uintptr_t)req->buf, req->len, desc->seg.addr, desc->seg.len);
}

/* The peer, if the operation would be posted at once. */
static struct mrf_peer *ready_peer(struct mrf_ep *ep, fi_addr_t addr)
{
	struct mrf_peer *peer;

	if (mrf_unlikely(addr >= ep->npeers || ep->nops >= MRF_EP_OPS))
		return NULL;
	peer = ep->peers[addr];
	if (mrf_unlikely(!peer || peer->state != MRF_PEER_READY ||
			 peer->gen != mrf_av_gen(ep->av, addr) ||
			 !mrf_list_empty(&peer->queue) || !mrf_conn_room(peer->conn, 1)))
		return NULL;
	return peer;
}

static struct mrf_op *take(struct mrf_ep *ep)
{
	struct mrf_list *node = mrf_list_first(&ep->free_ops);
	struct mrf_op *op;

	if (mrf_unlikely(!node))
		return NULL;
	mrf_list_del(node);
	op = mrf_list_entry(node, struct mrf_op, node);
	mrf_op_reset(op);
	return op;
}

static void fill(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_short *req,
		 const struct mrf_desc *desc)
{
	op->kind = req->kind;
	op->resolved = true;
	op->silent = ep->selective && !(ep->op_flags & FI_COMPLETION);
	op->inflight = 1;
	op->stamp = ++ep->clock;
	op->total = req->len;
	op->pos = req->len;
	op->context = req->context;
	op->nsge = 1;
	op->nrma = 1;
	op->sge[0].addr = desc->seg.iova + ((uintptr_t)req->buf - desc->seg.addr);
	op->sge[0].len = (uint32_t)req->len;
	op->sge[0].lkey = desc->seg.lkey;
	op->rma[0].addr = req->remote;
	op->rma[0].len = req->len;
	op->rma[0].key = req->key;
	op->desc[0] = (void *)(uintptr_t)req->desc;
	op->ndesc = 1;
}

static bool post(struct mrf_ep *ep, struct mrf_peer *peer, const struct mrf_short *req,
		 const struct mrf_desc *desc, const struct mrf_key_direct *key)
{
	struct mrf_op *op = take(ep);
	struct mrf_vwr wr;

	if (mrf_unlikely(!op))
		return false;
	fill(ep, op, req, desc);
	op->peer = peer;
	wr.op = req->kind == MRF_OP_READ ? MRF_VWR_READ : MRF_VWR_WRITE;
	wr.is_inline = false;
	wr.fence = false;
	wr.nsge = 1;
	wr.sge = op->sge;
	wr.remote_addr = key->iova_base + req->remote;
	wr.rkey = key->rkey;
	wr.imm = 0;
	if (mrf_unlikely(mrf_conn_post(peer->conn, &wr, op, req->len))) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		return false;
	}
	ep->nops++;
	return true;
}

bool mrf_ep_try_short(struct mrf_ep *ep, const struct mrf_short *req)
{
	struct mrf_key_direct key;
	struct mrf_desc desc;
	struct mrf_peer *peer;
	bool posted;

	if (!req->len || req->len > ep->short_max[req->kind] ||
	    (ep->op_flags & ~PLAIN_FLAGS) || !mrf_range_ok(req->remote, req->len) ||
	    !local_fits(ep, req, &desc))
		return false;
	mrf_lock_take(&ep->lock);
	peer = ready_peer(ep, req->addr);
	posted = peer && mrf_key_unpack(peer->mr_mode, req->key, &key) &&
		 post(ep, peer, req, &desc, &key);
	mrf_lock_release(&ep->lock);
	return posted;
}

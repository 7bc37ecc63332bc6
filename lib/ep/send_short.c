/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_tagged.h>
#include "base/iov.h"
#include "base/user.h"
#include "ep/send_short.h"
#include "ep/short.h"
#include "ep/tx/order.h"
#include "ep/tx/send_op.h"
#include "monitor/life.h"
#include "mr/desc.h"

/* Where the bytes are. */
struct place {
	struct mrf_sge sge;	  /* INLINE: no lkey */
	enum mrf_local_kind kind; /* DESC, INLINE or BOUNCE */
};

/* As buf/local.c would have left it. */
static void fill_local(struct mrf_op *op, const struct mrf_send_one *one, const struct place *place)
{
	struct mrf_local *local = &op->local;

	local->kind = place->kind;
	local->nsge = 1;
	local->sge[0] = place->sge;
	switch (place->kind) {
	case MRF_LOCAL_INLINE:
		memcpy(local->data, (const void *)place->sge.addr, one->len);
		local->sge[0].addr = (uintptr_t)local->data;
		break;
	case MRF_LOCAL_DESC:
		local->desc[0] = one->desc;
		local->ndesc = 1;
		break;
	case MRF_LOCAL_BOUNCE:
		local->copy = (void *)place->sge.addr;
		break;
	case MRF_LOCAL_CACHED: /* the general path's */
	case MRF_LOCAL_TEMP:
	case MRF_LOCAL_COPY:
	case MRF_LOCAL_STAGED:
	case MRF_LOCAL_APART:
		break;
	}
}

static void fill_send_locked(struct mrf_ep *ep, struct mrf_op *op, const struct mrf_send_one *one,
			     const struct place *place)
{
	mrf_lock_held(&ep->lock);
	op->type = &mrf_op_send;
	mrf_send_fill(op, one->tagged, one->tag, one->has_data);
	op->resolved = true;
	op->silent = one->inject || ep->short_silent;
	op->plain = !op->silent && ep->tx_cq && !ep->snd_cntr && mrf_local_is_bare(place->kind);
	op->stamp = ++ep->clock;
	op->total = one->len;
	op->context = one->context;
	op->imm.data = (uint32_t)one->data;
	if (one->len)
		fill_local(op, one, place);
}

static bool post_one_locked(struct mrf_ep *ep, struct mrf_peer *peer,
			    const struct mrf_send_one *one, const struct place *place)
{
	struct mrf_sge sge[2] = { { 0 }, place->sge };
	struct mrf_op *op = mrf_short_take_locked(ep);

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(!op))
		return false;
	fill_send_locked(ep, op, one, place);
	op->peer = peer;
	if (mrf_unlikely(mrf_send_frame_locked(peer, op, sge, !!one->len,
					       place->kind == MRF_LOCAL_INLINE))) {
		mrf_list_add_head(&op->node, &ep->free_ops);
		return false;
	}
	ep->nops++;
	return true;
}

static bool go(struct mrf_ep *ep, const struct mrf_send_one *one, const struct place *place)
{
	struct mrf_peer *peer;
	bool posted;

	mrf_lock_take(&ep->lock);
	peer = mrf_short_peer_locked(ep, MRF_CONN_LINE, one->addr);
	posted = peer && mrf_outlet_is_open(&peer->line) &&
		 !(mrf_unlikely(ep->entries) && mrf_order_follows_entry_locked(peer)) &&
		 post_one_locked(ep, peer, one, place);
	mrf_lock_release(&ep->lock);
	return posted;
}

/* Memory behind a descriptor is mapped. Of other memory there is a copy, which is taken first. */
static bool go_few(struct mrf_ep *ep, const struct mrf_send_one *one, bool described)
{
	const struct iovec from = { (void *)(uintptr_t)one->buf, one->len };
	uint8_t few[MRF_LIMIT_INJECT];
	struct place place = { .kind = MRF_LOCAL_INLINE,
			       .sge = { (uintptr_t)one->buf, (uint32_t)one->len, 0 } };

	if (!described && one->len) {
		mrf_monitor_hook();
		if (mrf_user_take(few, &from, 1))
			return false;
		place.sge.addr = (uintptr_t)few;
	}
	return go(ep, one, &place);
}

/* By way of a slot, if one is free. */
static bool go_slot(struct mrf_ep *ep, const struct mrf_send_one *one)
{
	const struct iovec from = { (void *)(uintptr_t)one->buf, one->len };
	struct place place = { .kind = MRF_LOCAL_BOUNCE, .sge.len = (uint32_t)one->len };
	void *slot;

	if (one->len > ep->buf.copy_max)
		return false;
	mrf_monitor_hook();
	slot = mrf_bounce_try(&ep->buf.bounce, &place.sge.lkey);
	if (!slot)
		return false;
	place.sge.addr = (uintptr_t)slot;
	if (!mrf_user_take(slot, &from, 1) && go(ep, one, &place))
		return true;
	mrf_bounce_give(&ep->buf.bounce, slot);
	return false;
}

bool mrf_send_short(struct mrf_ep *ep, const struct mrf_send_one *one)
{
	const struct mrf_mr_space *space = &ep->domain->space;
	struct place place = { .kind = MRF_LOCAL_DESC, .sge.len = (uint32_t)one->len };
	uintptr_t buf = (uintptr_t)one->buf;
	bool few = one->len <= MRF_LIMIT_INJECT, described;

	/* One more than the longest: 0 for none. */
	if (one->len >= ep->short_send || !mrf_fork_ours(ep->obj.owner) ||
	    !mrf_range_ok(buf, one->len) || (one->inject && !few))
		return false;
	described = !one->inject && one->len && one->desc &&
		    mrf_desc_local(space, one->desc, FI_SEND, buf, one->len, &place.sge.addr,
				   &place.sge.lkey);
	if (!described && !one->inject && one->len && space->mode & FI_MR_LOCAL)
		return false;
	if (few)
		return go_few(ep, one, described);
	return described ? go(ep, one, &place) : go_slot(ep, one);
}

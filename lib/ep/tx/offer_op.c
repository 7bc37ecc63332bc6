/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/errtext.h"
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/tx/cause.h"
#include "ep/tx/fail.h"
#include "ep/tx/lift.h"
#include "ep/tx/offer_ask.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/offered.h"
#include "ep/tx/send_frame.h"
#include "ep/tx/send_op.h"
#include "ep/tx/settle.h"

/* --- offering --------------------------------------------------------------------------- */

bool mrf_offer_lets_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(op->total > peer->line.eager))
		op->type = &mrf_op_offer;
	if (op->type != &mrf_op_offer || peer->conn->bulk)
		return true;
	mrf_bulk_want_locked(peer->conn);
	return false;
}

static int send_offer_locked(struct mrf_peer *peer, struct mrf_op *op,
			     const struct mrf_frame_offer *offer)
{
	uint8_t buf[MRF_FRAME_OFFER_MAX];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };

	sge.len = (uint32_t)mrf_frame_offer_encode(offer, buf);
	return mrf_conn_post_locked(peer->conn, &wr, op, 0, sge.len);
}

/* The most bytes that can be sent at a time; 0: any number. */
static uint32_t piece_of(const struct mrf_local *local)
{
	return local->kind == MRF_LOCAL_APART ? MRF_STAGE_CHUNK : 0;
}

static int post_offer_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_frame_offer offer = { .length = op->total,
					 .piece = piece_of(&op->local),
					 .bulk = mrf_bulk_name(peer->conn) };
	int ret = mrf_send_frame_fill_locked(peer, op, &offer.message);

	mrf_lock_held(&peer->ep->lock);
	if (peer->ep->orders & MRF_ORDER_AFTER_SENDS)
		offer.message.flags |= MRF_FRAME_TELL;
	if (!ret)
		ret = send_offer_locked(peer, op, &offer);
	if (ret)
		return ret;
	peer->conn->bulk->named = true;
	peer->line.offers = true;
	op->offer = peer->line.posted;
	op->send.resumes = false;
	mrf_send_frame_posted_locked(peer, op, &offer.message);
	mrf_frame_named(&peer->line.said, &offer.message);
	mrf_offered_await_locked(peer, op);
	/* An acknowledged frame tells nothing of a machine that goes afterwards. */
	mrf_conn_probe_locked(peer->conn);
	return 0;
}

/* Its place among the offers is that of its frame: those that came later were posted later. */
static void came_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_op_leave_locked(op);
	op->send.resumes = true;
	mrf_offered_await_locked(peer, op);
}

const struct mrf_op_type mrf_op_offer = {
	.kind = MRF_OP_SEND,
	.call = "fi_send",
	.data = true, /* the frame */
	.parts = true,
	.post = post_offer_locked,
	.came = came_locked,
};

/* --- the end ----------------------------------------------------------------------------- */

static void refused_locked(struct mrf_op *op)
{
	struct mrf_why why;

	mrf_why_set(&why, FI_ECONNREFUSED, 4333,
		    "the peer has not received the message: its endpoint is closing, or has no "
		    "room to ask for its bytes");
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_offered_fail_locked(op, &why);
}

/* --- bytes that were asked for ----------------------------------------------------------- */

/* What the target asks for cannot be, or is not there any more: it shall begin anew. */
static void start_over_locked(struct mrf_conn *conn)
{
	conn->bulk->connected = false;
	mrf_conn_break_locked(conn->peer);
}

/* Its bytes are gone: the target learns of that when it is asked over another line. */
static void give_offer_up_locked(struct mrf_bulk *bulk, struct mrf_op *op)
{
	mrf_offered_unawait_locked(op);
	op->peer->line.gave_up = true;
	start_over_locked(bulk->conn);
}

static bool is_wanted_next_locked(struct mrf_op *op, const struct mrf_granted *granted)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (op->send.resumes && !op->inflight && granted->offset >= op->acked) {
		op->pos = op->acked = mrf_min(granted->offset, op->total);
		op->send.resumes = false;
	}
	return !op->send.resumes && granted->offset == op->pos &&
	       granted->length <= op->total - op->pos;
}

/* Where the part is. Returns the number of pieces; 0: not all of it is held. */
static int pieces_of_part_locked(struct mrf_op *op, const struct mrf_granted *granted,
				 struct mrf_sge *sge)
{
	uint64_t len = granted->length;
	int nsge;

	if (granted->place) {
		*sge = mrf_lift_sge_locked(op->peer, granted);
		return 1;
	}
	nsge = mrf_local_sges(&op->local, op->pos, &len, sge, MRF_LOCAL_SGE);
	return len == granted->length ? nsge : 0;
}

static int post_part_locked(struct mrf_bulk *bulk, struct mrf_op *op,
			    const struct mrf_granted *granted)
{
	struct mrf_sge sge[MRF_LOCAL_SGE];
	int nsge = pieces_of_part_locked(op, granted, sge), ret;

	mrf_lock_held(&op->peer->ep->lock);
	if (!nsge)
		return -FI_EIO;
	ret = mrf_vpair_send(bulk->pair, bulk->id, sge, nsge, op->local.kind == MRF_LOCAL_INLINE);
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_conn_denied_locked(bulk->conn);
		ret = 0;
	}
	if (mrf_unlikely(ret))
		return ret;
	bulk->lifted[bulk->tail % MRF_GRANTS] = granted->place;
	bulk->posted[bulk->tail++ % MRF_GRANTS] =
		(struct mrf_posted){ .op = op, .bytes = granted->length };
	op->peer->ep->scq_used++;
	op->inflight++;
	op->pos += granted->length;
	return 0;
}

/* False: this one has to wait, or the line has ended with it. */
static bool post_next_locked(struct mrf_bulk *bulk)
{
	struct mrf_peer *peer = bulk->conn->peer;
	const struct mrf_granted *granted = &bulk->granted[bulk->first % MRF_GRANTS];
	struct mrf_op *op = mrf_offered_find_locked(peer, granted->number);
	int ret;

	if (mrf_bulk_in_flight(bulk) == MRF_GRANTS || peer->ep->scq_used >= MRF_EP_SCQ) {
		mrf_conn_await_room_locked(peer);
		return false;
	}
	if (!op || !is_wanted_next_locked(op, granted)) {
		start_over_locked(bulk->conn);
		return false;
	}
	if (mrf_unlikely(!mrf_local_open(&peer->ep->buf, &op->local))) {
		give_offer_up_locked(bulk, op);
		mrf_cause_fail_locked(op, MRF_WC_LOCAL, "");
		return false;
	}
	if (op->local.kind == MRF_LOCAL_APART && !granted->place)
		return false;
	ret = post_part_locked(bulk, op, granted);
	if (mrf_unlikely(ret)) {
		give_offer_up_locked(bulk, op);
		mrf_fail_post_locked(op, ret);
		return false;
	}
	bulk->first++;
	return true;
}

static bool takes_parts_locked(const struct mrf_bulk *bulk)
{
	return bulk->connected && bulk->conn->peer->state == MRF_PEER_READY;
}

static void lifted_locked(struct mrf_bulk *bulk, struct mrf_op *op, const struct mrf_why *why);

static void post_all_locked(struct mrf_bulk *bulk)
{
	while (takes_parts_locked(bulk) && bulk->first != bulk->last && post_next_locked(bulk))
		;
	if (takes_parts_locked(bulk) && mrf_lift_next_locked(bulk, lifted_locked))
		start_over_locked(bulk->conn);
}

/* A part has been copied from a device, or (why) cannot be. */
static void lifted_locked(struct mrf_bulk *bulk, struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (why && op->offered) {
		give_offer_up_locked(bulk, op);
		mrf_settle_fail_locked(op, why);
	} else {
		mrf_settle_locked(op);
	}
	post_all_locked(bulk);
}

/* --- what the target says ---------------------------------------------------------------- */

/* The target's end of the pair, with the first part that it asks for. */
static bool take_name_locked(struct mrf_conn *conn, const struct mrf_frame_bulk *name)
{
	struct mrf_bulk *bulk = conn->bulk;

	if (!name->qp)
		return true;
	if (!bulk || bulk->other.qpn)
		return false;
	bulk->other = (struct mrf_vpair_name){ .qpn = name->qp, .psn = name->psn };
	mrf_conn_kick_locked(conn->peer);
	return true;
}

static bool take_part_locked(struct mrf_conn *conn, const struct mrf_frame_grant *grant)
{
	struct mrf_bulk *bulk = conn->bulk;

	if (!bulk || !bulk->other.qpn || bulk->last - bulk->first == MRF_GRANTS)
		return false;
	bulk->granted[bulk->last++ % MRF_GRANTS] = (struct mrf_granted){ .number = grant->number,
									 .offset = grant->offset,
									 .length = grant->length };
	post_all_locked(bulk);
	return true;
}

static void answered_locked(struct mrf_peer *peer, uint64_t number)
{
	struct mrf_outlet *line = &peer->line;

	if (!line->asked || line->ask != number)
		return;
	line->asked = false;
	line->ask++;
}

bool mrf_offer_granted_locked(struct mrf_conn *conn, const struct mrf_frame_grant *grant)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_op *op;

	mrf_lock_held(&peer->ep->lock);
	if (!take_name_locked(conn, &grant->bulk))
		return false;
	if (grant->length)
		return take_part_locked(conn, grant);
	answered_locked(peer, grant->number);
	op = grant->flags & MRF_FRAME_WAITS ? NULL : mrf_offered_find_locked(peer, grant->number);
	/* It may have failed here. */
	if (!op)
		return true;
	if (grant->flags & MRF_FRAME_REFUSED)
		refused_locked(op);
	else
		mrf_offered_end_locked(op);
	return true;
}

/* --- what comes back --------------------------------------------------------------------- */

static void part_done_locked(struct mrf_op *op, uint32_t bytes)
{
	op->peer->dial.losses = 0;
	if (op->offered)
		op->acked += bytes;
	if (op->offered && op->acked == op->total && !op->send.delivers)
		mrf_offered_end_locked(op);
	else
		mrf_settle_locked(op);
}

/* The bytes go again over the next line, unless they are gone. */
static void part_failed_locked(struct mrf_bulk *bulk, struct mrf_op *op, const struct mrf_wc *wc)
{
	bool local = wc->status == MRF_WC_LOCAL || !mrf_local_open(&op->peer->ep->buf, &op->local);

	mrf_lock_held(&op->peer->ep->lock);
	if (local && op->offered) {
		give_offer_up_locked(bulk, op);
		mrf_cause_fail_locked(op, MRF_WC_LOCAL, "");
		return;
	}
	start_over_locked(bulk->conn);
	mrf_settle_locked(op);
}

static struct mrf_posted take_off_locked(struct mrf_bulk *bulk)
{
	struct mrf_posted posted = bulk->posted[bulk->head++ % MRF_GRANTS];

	bulk->conn->peer->ep->scq_used--;
	if (bulk->lifted[(bulk->head - 1) % MRF_GRANTS])
		mrf_lift_sent_locked(bulk->conn->peer);
	posted.op->inflight--;
	return posted;
}

void mrf_offer_completed_locked(struct mrf_bulk *bulk, const struct mrf_wc *wc)
{
	struct mrf_posted posted;

	mrf_lock_held(&bulk->conn->peer->ep->lock);
	if (!mrf_bulk_in_flight(bulk))
		return;
	posted = take_off_locked(bulk);
	if (mrf_likely(wc->status == MRF_WC_OK))
		part_done_locked(posted.op, posted.bytes);
	else
		part_failed_locked(bulk, posted.op, wc);
	post_all_locked(bulk);
	/* It may have been the last of an address that was removed. */
	if (mrf_unlikely(bulk->conn->peer->gone))
		mrf_conn_kick_locked(bulk->conn->peer);
}

void mrf_offer_lost_locked(struct mrf_conn *conn)
{
	struct mrf_bulk *bulk = conn->bulk;
	struct mrf_peer *peer = conn->peer;

	mrf_lock_held(&peer->ep->lock);
	mrf_list_each (node, &peer->offered)
		mrf_op_awaiting(node)->send.resumes = true;
	if (!bulk)
		return;
	while (mrf_bulk_in_flight(bulk))
		mrf_settle_locked(take_off_locked(bulk).op);
	mrf_lift_lost_locked(peer);
	mrf_bulk_free_locked(conn);
}

/* --- more to be posted --------------------------------------------------------------------- */

void mrf_offer_advance_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_offer_ask_locked(peer);
	if (peer->conn->bulk && peer->conn->bulk->first != peer->conn->bulk->last)
		post_all_locked(peer->conn->bulk);
}

/* --- the agent --------------------------------------------------------------------------- */

/* All that is offered, and all that would be. */
static void no_pair_locked(struct mrf_peer *peer, int ret)
{
	struct mrf_why why;

	mrf_why_set(&why, -ret, 4331,
		    "there are no resources for messages of more than %d bytes or with "
		    "FI_MATCH_COMPLETE: %s",
		    MRF_SEND_MAX, mrf_errtext(-ret));
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_offered_fail_all_locked(peer, &why);
	mrf_list_each_safe (node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (op->type == &mrf_op_offer)
			mrf_settle_fail_locked(op, &why);
	}
}

void mrf_offer_serve_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (conn->wants_bulk && !conn->bulk) {
		ret = mrf_bulk_open_locked(conn);
		/* A line that has just ended makes none, either. */
		if (ret && ret != -FI_ECONNRESET && peer->state == MRF_PEER_READY)
			no_pair_locked(peer, ret);
		else if (ret)
			mrf_conn_break_locked(peer);
	}
	if (peer->state != MRF_PEER_READY || !conn->bulk || !conn->bulk->other.qpn ||
	    conn->bulk->connected)
		return;
	if (mrf_bulk_connect_locked(conn))
		mrf_conn_break_locked(peer);
}

void mrf_offer_abandon_locked(struct mrf_peer *peer)
{
	struct mrf_bulk *bulk = peer->conn ? peer->conn->bulk : NULL;
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while (bulk && mrf_bulk_in_flight(bulk)) {
		struct mrf_op *op = take_off_locked(bulk).op;

		/* It has failed, and waited for this. */
		if (!op->inflight && !op->offered)
			mrf_list_add_tail(&op->node, &peer->redo);
	}
	while ((node = mrf_list_first(&peer->offered))) {
		struct mrf_op *op = mrf_op_awaiting(node);

		mrf_offered_unawait_locked(op);
		if (!op->inflight)
			mrf_list_add_tail(&op->node, &peer->redo);
	}
}

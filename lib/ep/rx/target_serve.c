/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What peers ask of a target: questions, requests, immediate data. What costs little is
 * taken in as it comes. Questions and requests wait at their connection, in order, and
 * connections take turns, so that the requests of one keep the others waiting for no
 * longer than one request takes. Agent thread.
 *
 * The target told each initiator how many questions and requests it may have under way,
 * and disconnects one that sends more.
 *
 * Data for the application (FI_REMOTE_CQ_DATA) wait when nobody reads them. No key is
 * needed to send them, so a peer could otherwise make the completion queue grow without
 * end. While MRF_UNREAD_MAX of them are unread, the receives that they came in are not
 * posted again: RC holds the peer back, on this connection only. Answers and replies,
 * which go the other way, have receives of their own at the peer. Events of regions are
 * counted, not queued, and never wait for that reason alone.
 */
#include <sched.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "contract/limits.h"
#include "ep/rx/requests.h"
#include "ep/rx/staging.h"
#include "ep/rx/target_serve.h"
#include "mr/demand/gone.h"

/* The slot in the work request id of a FORGET; those of RECVs and answers are below. */
#define FORGET_SLOT ((1u << MRF_WR_SLOT_BITS) - 1)

_Static_assert(MRF_PASSIVE_SLOTS < FORGET_SLOT, "slot numbers fit");
_Static_assert(MRF_PROTO_MAX_SEG >= MRF_MR_IOV_LIMIT, "an answer can name all segments");

/* --- answering ------------------------------------------------------------------------------- */

static void fill_answer(const struct mrf_ask *ask, const struct mrf_mr_view *view, bool virt,
			struct mrf_answer *answer)
{
	unsigned i;

	*answer = (struct mrf_answer){ .cookie = ask->cookie,
				       .key = ask->key,
				       .status = (uint32_t)view->status,
				       .flags = (view->complete ? MRF_ANSWER_COMPLETE : 0) |
						(view->once ? MRF_ANSWER_ONCE : 0) |
						(view->staged ? MRF_ANSWER_STAGED : 0),
				       .access = view->access,
				       .base = view->base,
				       .len = view->len,
				       .serial = view->serial,
				       .nseg = view->nseg };
	for (i = 0; i < view->nseg; i++)
		answer->seg[i] = (struct mrf_wire_seg){
			.pos = view->seg[i].addr,
			.len = view->seg[i].len,
			.rkey = view->seg[i].rkey,
			.iova_off = virt ? 0 : (uint32_t)view->seg[i].iova,
		};
}

/* The peer reaches the region by way of staging memory. */
static void have_staging(struct mrf_passive *passive, struct mrf_mr_view *view)
{
	if (mrf_staging_has(passive))
		return;
	view->status = MRF_MR_NO_ROOM;
	view->complete = false;
	view->nseg = 0;
}

static void find_answer(struct mrf_passive *passive, const struct mrf_ask *ask,
			struct mrf_answer *answer)
{
	struct mrf_mr_space *space = &passive->ep->domain->space;
	struct mrf_mr_query question = { .key = ask->key,
					 .serial = ask->serial,
					 .addr = ask->addr,
					 .len = ask->len,
					 .lease = ask->flags & MRF_ASK_ONCE,
					 .port = &passive->ep->port };
	struct mrf_mr_view view = { .status = MRF_MR_UNKNOWN };

	if (ask->flags & MRF_ASK_RELEASE)
		mrf_mr_lease_end(&passive->lease);
	mrf_mr_reach(space, &question, &passive->lease, &view);
	if (view.staged)
		have_staging(passive, &view);
	mrf_debug(FI_LOG_EP_DATA, "a peer asks for key 0x%llx, 0x%llx + %llu: answers status %d",
		  (unsigned long long)ask->key, (unsigned long long)ask->addr,
		  (unsigned long long)ask->len, (int)view.status);
	fill_answer(ask, &view, space->mode & FI_MR_VIRT_ADDR, answer);
	answer->event = mrf_passive_wants_events(passive) ? view.event : 0;
}

static int post_slot(struct mrf_passive *passive, unsigned slot)
{
	return mrf_passive_own_error(mrf_passive_post_slot(passive, slot));
}

static int answer_ask(struct mrf_passive *passive, unsigned slot, size_t len)
{
	const uint8_t *msg = passive->slots[slot];
	struct mrf_ask ask;
	struct mrf_answer answer;
	uint8_t out[MRF_PROTO_MAX_MSG];
	int ret = mrf_ask_decode(msg, len, &ask);

	if (ret)
		return ret;
	find_answer(passive, &ask, &answer);
	return mrf_passive_send_back(passive, slot, out, mrf_answer_encode(&answer, out));
}

/* Delivers the data of fi_writedata and the like. */
static void deliver_data(struct mrf_passive *passive, uint64_t len, uint64_t data)
{
	struct mrf_comp comp = { .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				 .len = len,
				 .data = data,
				 .src_addr = FI_ADDR_NOTAVAIL };

	if (passive->ep->rx_cq)
		mrf_cq_write(passive->ep->rx_cq, &comp);
	else if (!passive->ep->told_dropped)
		mrf_warn(
			FI_LOG_EP_DATA, 4069,
			"the data of a peer's write (FI_REMOTE_CQ_DATA) are dropped: no completion "
			"queue is bound to this endpoint with FI_RECV (said once per endpoint)");
	passive->ep->told_dropped |= !passive->ep->rx_cq;
}

static int take_data(struct mrf_passive *passive, const uint8_t *msg, size_t len)
{
	struct mrf_data data;
	int ret = mrf_data_decode(msg, len, &data);

	/* All other immediate data come with a write that the kernel has checked. */
	if (!mrf_passive_wants_events(passive))
		return -FI_EINVAL;
	if (ret || data.len > MRF_LIMIT_MSG_SIZE)
		return -FI_EINVAL;
	deliver_data(passive, data.len, data.data);
	return 0;
}

/*
 * One message whose turn has come. Its slot is posted again, now or when it is answered.
 * -FI_EAGAIN: the message is to have another turn.
 */
static int serve_message(struct mrf_passive *passive, unsigned slot, size_t len)
{
	int type = mrf_msg_type(passive->slots[slot], len);

	if (type < 0)
		return type;
	switch ((enum mrf_msg_type)type) {
	case MRF_MSG_ASK:
		passive->asks--;
		return answer_ask(passive, slot, len);
	case MRF_MSG_RELEASE:
		mrf_mr_lease_end(&passive->lease);
		return post_slot(passive, slot);
	case MRF_MSG_ATOMIC:
	case MRF_MSG_FLUSH:
	case MRF_MSG_STAGE:
	case MRF_MSG_BYTES:
	case MRF_MSG_SYNC:
		return mrf_requests_serve(passive, slot, len);
	case MRF_MSG_DATA: /* taken in as it came */
	case MRF_MSG_HELLO:
	case MRF_MSG_WELCOME:
	case MRF_MSG_REFUSE:
	case MRF_MSG_ANSWER:
	case MRF_MSG_FORGET:
	case MRF_MSG_REPLY:
		break;
	}
	return -FI_EINVAL;
}

_Static_assert(MRF_MR_GONE <= MRF_PROTO_MAX_GONE, "all that are remembered can be told");

/* What has ended since the peer was told. False: nothing. */
static bool gone_since(struct mrf_passive *passive, struct mrf_forget *forget)
{
	struct mrf_mr_gone gone[MRF_MR_GONE];
	unsigned i, n = mrf_mr_gone_since(&passive->ep->domain->space, passive->ep->port.class,
					  &passive->told, gone);

	forget->count = n == MRF_MR_GONE_ALL ? 0 : n;
	for (i = 0; i < forget->count; i++)
		forget->gone[i] = (struct mrf_wire_gone){ gone[i].key, gone[i].pos, gone[i].len };
	return n;
}

/* One FORGET at a time: the peer has little room for messages that it did not ask for. */
void mrf_passive_forget(struct mrf_owner *owner)
{
	struct mrf_passive *passive = mrf_passive_of(owner);
	uint8_t out[MRF_PROTO_FORGET_MAX];
	struct mrf_forget forget;
	struct mrf_sge sge = { .addr = (uintptr_t)out };
	struct mrf_vwr wr = { .wr_id = MRF_WR_ID(passive->owner.id, FORGET_SLOT),
			      .op = MRF_VWR_SEND,
			      .is_inline = true,
			      .nsge = 1,
			      .sge = &sge };

	passive->forget_again = passive->forgetting;
	mrf_passive_hear_of_sent(passive);
	if (passive->forgetting || !gone_since(passive, &forget))
		return;
	sge.len = (uint32_t)mrf_forget_encode(&forget, out);
	/* If it is not sent, the kernel refuses the peer's accesses: slower, but not wrong. */
	passive->forgetting = !mrf_passive_post(passive, &wr);
}

/* --- taking turns ------------------------------------------------------------------------ */

/* -FI_E2BIG: the peer has sent more at a time than it was allowed to. */
static int wait_for_turn(struct mrf_passive *passive, unsigned slot, size_t len)
{
	passive->requests += mrf_requests_in(passive->slots[slot], len);
	passive->asks += mrf_msg_type(passive->slots[slot], len) == MRF_MSG_ASK;
	if (passive->requests > MRF_REQUESTS || passive->asks > MRF_ASKS)
		return -FI_E2BIG;
	passive->waiting[passive->last++ % MRF_PASSIVE_SLOTS] =
		(struct mrf_waiting){ (uint8_t)slot, (uint16_t)len };
	mrf_passive_take_place(passive);
	return 0;
}

static void hang_up(struct mrf_passive *passive, size_t len, int ret)
{
	if (ret == -FI_EACCES)
		mrf_agent_suspect(passive->ep->agent);
	else if (ret == -FI_E2BIG)
		mrf_warn(FI_LOG_EP_CTRL, 4025,
			 "a peer sends more than %d questions or %d requests at a time: "
			 "its connection is closed",
			 MRF_ASKS, MRF_REQUESTS);
	else if (ret == -FI_ECONNABORTED)
		mrf_info(FI_LOG_EP_CTRL, "a peer is not answered: its connection has ended");
	else
		mrf_warn(FI_LOG_EP_CTRL, 4024,
			 "a peer asked a malformed question of %zu byte%s (%d): its connection is "
			 "closed",
			 len, MRF_S(len), ret);
	mrf_passive_disconnect(passive);
}

/*
 * What is to go to the peer, unless it has its turn again soon. If a job has begun, its thread goes
 * first where processors are few, and again whenever something has gone: a device copies meanwhile.
 */
static int push(struct mrf_passive *passive)
{
	int ret;

	if (!passive->staging || !mrf_list_empty(&passive->ready))
		return 0;
	do {
		if (passive->away && mrf_staging_owes(passive->staging))
			sched_yield();
		ret = mrf_staging_push(passive->staging);
	} while (!ret && mrf_staging_owes(passive->staging));
	return ret;
}

/* False: the message is not done yet, and others that have come in have their turns first. */
static bool serve_next(struct mrf_passive *passive)
{
	const struct mrf_waiting *next = &passive->waiting[passive->first % MRF_PASSIVE_SLOTS];
	int ret = serve_message(passive, next->slot, next->len), pushed = 0;

	passive->first += ret != -FI_EAGAIN;
	if (!ret || ret == -FI_EAGAIN) {
		mrf_passive_take_place(passive);
		pushed = push(passive);
	}
	if (pushed || (ret && ret != -FI_EAGAIN))
		hang_up(passive, next->len, pushed ? pushed : ret);
	return ret != -FI_EAGAIN;
}

bool mrf_target_serve(struct mrf_agent *agent)
{
	struct mrf_list *ready = &mrf_eps_of(agent)->ready;
	int64_t end = mrf_now_us() + MRF_TURN_US;
	struct mrf_list *node;

	while (!atomic_load(&agent->commanded) && (node = mrf_list_pop(ready))) {
		if (!serve_next(mrf_list_entry(node, struct mrf_passive, ready)) ||
		    mrf_now_us() >= end)
			break;
	}
	return !mrf_list_empty(ready);
}

/* --- taking in --------------------------------------------------------------------------- */

/* The FORGET has arrived, so its slot can take another one. */
static void sent(struct mrf_passive *passive, unsigned slot)
{
	passive->sending--;
	if (slot == FORGET_SLOT) {
		passive->forgetting = false;
		if (passive->forget_again)
			mrf_passive_forget(&passive->owner);
	} else if (slot < MRF_PASSIVE_SLOTS && passive->state == MRF_PASSIVE_UP &&
		   mrf_passive_post_slot(passive, slot)) {
		mrf_passive_disconnect(passive);
	}
	mrf_passive_hear_of_sent(passive);
	mrf_passive_take_place(passive);
}

/* --- what the application does not read ---------------------------------------------------- */

static bool has_unread(const struct mrf_passive *passive)
{
	return passive->ep->rx_cq && mrf_cq_unread(passive->ep->rx_cq) >= MRF_UNREAD_MAX;
}

static void look_later(struct mrf_passive *passive)
{
	mrf_timer_set(passive->ep->agent, &passive->look, MRF_UNREAD_MS);
}

void mrf_passive_look(struct mrf_timer *timer)
{
	struct mrf_passive *passive = mrf_container_of(timer, struct mrf_passive, look);

	if (passive->state != MRF_PASSIVE_UP)
		return;
	if (has_unread(passive)) {
		look_later(passive);
		return;
	}
	while (passive->nheld) {
		if (mrf_passive_post_slot(passive, passive->held[--passive->nheld])) {
			mrf_passive_disconnect(passive);
			return;
		}
	}
}

/* The slot of a message that was taken in at once. */
static int free_slot(struct mrf_passive *passive, unsigned slot)
{
	if (!has_unread(passive))
		return post_slot(passive, slot);
	passive->held[passive->nheld++] = (uint8_t)slot;
	if (!mrf_timer_runs(&passive->look))
		look_later(passive);
	return 0;
}

/* Comes behind what a write has brought. */
static int take_imm(struct mrf_passive *passive, unsigned slot, const struct mrf_wc *wc)
{
	if (!mrf_passive_wants_events(passive)) {
		deliver_data(passive, wc->byte_len, wc->imm);
		return free_slot(passive, slot);
	}
	/*
	 * It counts even if the connection ends now: the peer knows that the data arrived. A write
	 * of no bytes modified nothing. Events are counted, not queued.
	 */
	if (wc->byte_len)
		mrf_mr_event(&passive->ep->domain->space, wc->imm, &passive->ep->port);
	return post_slot(passive, slot);
}

static int take_message(struct mrf_passive *passive, unsigned slot, size_t len)
{
	const uint8_t *msg = passive->slots[slot];
	int ret;

	if (mrf_msg_type(msg, len) != MRF_MSG_DATA)
		return wait_for_turn(passive, slot, len);
	ret = take_data(passive, msg, len);
	return ret ? ret : free_slot(passive, slot);
}

static int take_from_peer(struct mrf_passive *passive, unsigned slot, const struct mrf_wc *wc)
{
	if (slot >= MRF_PASSIVE_SLOTS)
		return 0;
	switch (wc->kind) {
	case MRF_WC_RECV:
		return take_message(passive, slot, wc->byte_len);
	case MRF_WC_RECV_IMM:
		return take_imm(passive, slot, wc);
	case MRF_WC_RECV_SEND_IMM: /* what lines have */
		return -FI_EINVAL;
	case MRF_WC_SENT:
		break;
	}
	return 0;
}

void mrf_passive_message(struct mrf_owner *owner, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_passive *passive = mrf_passive_of(owner);
	int ret;

	if (slot == MRF_STAGING_IN || slot == MRF_STAGING_OUT) {
		if (wc->status == MRF_WC_OK)
			mrf_staging_completed(passive, slot, wc);
		else if (passive->state != MRF_PASSIVE_DISCONNECTED)
			mrf_passive_disconnect(passive);
		return;
	}
	mrf_passive_received(passive, slot, wc->status == MRF_WC_FLUSHED);
	if (wc->status != MRF_WC_OK) {
		/* The initiator deals with a broken connection: it disconnects and dials again. */
		mrf_passive_broken(passive);
		return;
	}
	if (wc->kind == MRF_WC_SENT) {
		sent(passive, slot);
		return;
	}
	mrf_passive_established(passive);
	ret = take_from_peer(passive, slot, wc);
	if (ret && passive->state != MRF_PASSIVE_DISCONNECTED)
		hang_up(passive, wc->byte_len, ret);
}

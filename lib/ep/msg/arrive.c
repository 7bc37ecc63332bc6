/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "contract/budget.h"
#include "contract/limits.h"
#include "ep/model/ep.h"
#include "ep/msg/arrive.h"
#include "ep/msg/grant.h"
#include "ep/msg/intake.h"
#include "ep/msg/label.h"
#include "ep/msg/lost.h"
#include "ep/msg/multi.h"
#include "ep/msg/pull.h"
#include "ep/msg/reverse.h"
#include "loop/agent_calls.h"
#include "proto/frame.h"

/* It moves to memory of its own, or stays in its slot if there is none. Returns where it is now. */
static struct mrf_message *move_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	size_t len = message->offer.is ? 0 : message->len;
	struct mrf_message *own = malloc(sizeof(*own) + len);

	if (!own)
		return message;
	*own = *message;
	own->slot = NULL;
	own->data = (uint8_t *)(own + 1);
	if (len)
		memcpy(own + 1, message->data, len);
	mrf_inbox_give_slot_locked(inbox, message->slot);
	return own;
}

/* Nothing takes it yet. */
static void keep_message_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	if (!message->offer.is)
		message = move_locked(inbox, message);
	mrf_inbox_keep_locked(inbox, message);
	mrf_match_keep(mrf_inbox_match(inbox, message->tagged), &message->match,
		       message->origin->source, message->tag);
}

/* Was the endpoint opened for such messages, as its welcome said? */
static bool takes(const struct mrf_ep *ep, const struct mrf_frame_message *frame)
{
	return ep->caps & (frame->flags & MRF_FRAME_TAGGED ? FI_TAGGED : FI_MSG);
}

/* Checks that the frame is the next one, and one that may come. */
static int check_frame(const struct mrf_ep *ep, const struct mrf_origin *origin,
		       const struct mrf_frame_message *frame)
{
	if (mrf_unlikely(frame->number != (uint32_t)origin->next || !takes(ep, frame)))
		return -FI_EINVAL;
	return mrf_unlikely(origin->next >= origin->limit) ? -FI_E2BIG : 0;
}

static void count_frame(struct mrf_origin *origin, struct mrf_slot *slot)
{
	slot->origin = origin;
	slot->frame = origin->next;
	origin->held++;
	origin->next++;
	origin->used_up |= origin->next == origin->limit;
}

static void fill_message(struct mrf_message *message, struct mrf_slot *slot,
			 const struct mrf_frame_message *frame)
{
	message->slot = slot;
	message->origin = slot->origin;
	message->data = frame->data;
	message->len = frame->data_len;
	message->tagged = frame->flags & MRF_FRAME_TAGGED;
	message->tag = frame->tag;
	message->has_cq_data = frame->flags & MRF_FRAME_CQ_DATA;
	message->cq_data = frame->cq_data;
	message->offer.is = false;
}

/* It goes to the receive that takes it, or is kept. */
static void settle_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	struct mrf_match_recv *recv;

	message->origin->kept++;
	mrf_label_refresh_locked(inbox);
	recv = mrf_recv_arrive_locked(inbox, mrf_inbox_match(inbox, message->tagged),
				      message->origin->source, message->tag);
	if (mrf_likely(recv != NULL))
		mrf_pull_meet_locked(inbox, mrf_recv_of(recv), message);
	else
		keep_message_locked(inbox, message);
}

/* bits: of its count of what was taken. */
static int message_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot,
			       const struct mrf_frame_message *frame, unsigned bits)
{
	struct mrf_inbox *inbox = inlet->inbox;
	int ret = check_frame(inbox->ep, inlet->origin, frame);

	if (mrf_unlikely(ret || frame->flags & MRF_FRAME_TELL))
		return ret ? ret : -FI_EINVAL;
	count_frame(inlet->origin, slot);
	if (frame->flags & MRF_FRAME_ACK)
		inlet->origin->wanted = inlet->origin->next;
	if (frame->flags & MRF_FRAME_TAKEN)
		mrf_reverse_hear_locked(inlet, frame, bits);
	fill_message(&slot->message, slot, frame);
	settle_locked(inbox, &slot->message);
	return 0;
}

/* All of it are data. */
static int bare_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot, const struct mrf_wc *wc)
{
	struct mrf_frame_message frame;
	int ret = mrf_frame_bare_message(&inlet->said, wc->imm, &frame);

	if (mrf_unlikely(ret))
		return ret;
	frame.number = (uint32_t)inlet->origin->next;
	frame.data = slot->bytes;
	frame.data_len = wc->byte_len;
	return message_came_locked(inlet, slot, &frame, MRF_FRAME_BARE_BITS);
}

/* --- offers --------------------------------------------------------------------------- */

static void fill_offer(struct mrf_slot *slot, const struct mrf_frame_offer *frame)
{
	fill_message(&slot->message, slot, &frame->message);
	slot->message.len = frame->length;
	slot->message.offer = (struct mrf_offered){ .is = true,
						    .ends = frame->message.flags & MRF_FRAME_ACK,
						    .piece = frame->piece,
						    .number = slot->frame };
}

/* A length that no call of this library sends, and memory could not have. */
static int check_offer(const struct mrf_inlet *inlet, const struct mrf_frame_offer *frame)
{
	int ret = check_frame(inlet->inbox->ep, inlet->origin, &frame->message);

	if (ret)
		return ret;
	return frame->length > MRF_LIMIT_MSG_SIZE || !inlet->other.qpn ? -FI_EINVAL : 0;
}

static int offer_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot, size_t len)
{
	struct mrf_inbox *inbox = inlet->inbox;
	struct mrf_message *message;
	struct mrf_frame_offer frame;
	int ret = mrf_frame_offer_decode(slot->bytes, len, &frame);

	if (!ret && !mrf_intake_name_locked(inlet, &frame.bulk))
		ret = -FI_EINVAL;
	if (!ret)
		ret = check_offer(inlet, &frame);
	if (ret)
		return ret;
	count_frame(inlet->origin, slot);
	mrf_frame_named(&inlet->said, &frame.message);
	if (frame.message.flags & MRF_FRAME_TELL)
		inlet->origin->wanted = inlet->origin->next;
	if (frame.message.flags & MRF_FRAME_TAKEN)
		mrf_reverse_hear_locked(inlet, &frame.message, MRF_FRAME_COUNT_BITS);
	fill_offer(slot, &frame);
	message = move_locked(inbox, &slot->message);
	mrf_list_add_tail(&message->offer.node, &inlet->origin->offers);
	settle_locked(inbox, message);
	return 0;
}

/*
 * It asks in order, and waits for each answer. What the line says of the end of an offer is one, too, even if it
 * was sent before the question came: then the next question may come before the answer to this one has gone, which
 * nobody waits for any more.
 */
static bool is_next_question(const struct mrf_inlet *inlet, const struct mrf_frame_ask *ask)
{
	const struct mrf_origin *origin = inlet->origin;

	if (ask->number < origin->asked)
		return false;
	return ask->flags & MRF_FRAME_LAST ? ask->number == origin->begun
					   : ask->number < origin->begun && inlet->other.qpn;
}

static int ask_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot, size_t len)
{
	struct mrf_origin *origin = inlet->origin;
	struct mrf_frame_ask ask;
	int ret = mrf_frame_ask_decode(slot->bytes, len, &ask);

	if (ret)
		return ret;
	if (!mrf_intake_name_locked(inlet, &ask.bulk) || !is_next_question(inlet, &ask))
		return -FI_EINVAL;
	mrf_shared_post(&inlet->inbox->slots, slot);
	mrf_pull_withdrawn_locked(origin, origin->asked, ask.number);
	origin->asked = ask.number;
	if (!(ask.flags & MRF_FRAME_LAST)) {
		origin->asked++;
		inlet->answer = (struct mrf_frame_grant){
			.flags = mrf_pull_asked_locked(origin, ask.number) ? MRF_FRAME_WAITS : 0,
			.number = ask.number
		};
		inlet->answers = true;
	}
	mrf_pull_go_locked(origin);
	return 0;
}

/* ret: why it is no message. */
static int other_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot, size_t len, int ret)
{
	int type = mrf_frame_type(slot->bytes, len);

	if (type < 0)
		return type;
	switch ((enum mrf_frame_type)type) {
	case MRF_FRAME_MESSAGE:
		return ret;
	case MRF_FRAME_PROBE:
		mrf_shared_post(&inlet->inbox->slots, slot);
		return 0;
	case MRF_FRAME_OFFER:
		return offer_came_locked(inlet, slot, len);
	case MRF_FRAME_ASK:
		return ask_came_locked(inlet, slot, len);
	case MRF_FRAME_GRANT: /* what a target says */
	case MRF_FRAME_NOTE:
		break;
	}
	return -FI_EINVAL;
}

static int headed_came_locked(struct mrf_inlet *inlet, struct mrf_slot *slot, size_t len)
{
	struct mrf_frame_message frame;
	int ret = mrf_frame_message_decode(slot->bytes, len, &frame);

	if (mrf_unlikely(ret))
		return other_came_locked(inlet, slot, len, ret);
	mrf_frame_named(&inlet->said, &frame);
	return message_came_locked(inlet, slot, &frame, MRF_FRAME_COUNT_BITS);
}

/*
 * The slot is posted again, now or when it is no longer needed. Otherwise it is left to the caller,
 * and the line is to be cut off: -FI_EINVAL or as mrf_frame_message_decode, the frame is malformed,
 * or not the next one; -FI_E2BIG, it is one too many.
 */
static int take_frame_locked(struct mrf_inlet *inlet, struct mrf_slot *slot,
			     const struct mrf_wc *wc)
{
	switch (wc->kind) {
	case MRF_WC_RECV_SEND_IMM:
		return bare_came_locked(inlet, slot, wc);
	case MRF_WC_RECV:
		return headed_came_locked(inlet, slot, wc->byte_len);
	case MRF_WC_RECV_IMM: /* a line has no right to write, */
	case MRF_WC_SENT:     /* and this is a receive */
		break;
	}
	return -FI_EINVAL;
}

/* --- polling -------------------------------------------------------------------------- */

static struct mrf_inlet *inlet_of_locked(struct mrf_inbox *inbox, uint32_t qpn)
{
	if (mrf_unlikely(!inbox->last || inbox->last->qpn != qpn))
		inbox->last = mrf_idmap_find(&inbox->by_qpn, qpn);
	return inbox->last;
}

/* What is done with a frame does not say in advance that its slot is free. */
static void slot_locked(struct mrf_inbox *inbox, const struct mrf_wc *wc)
{
	struct mrf_slot *slot = mrf_slots_find(&inbox->slots, wc->wr_id);
	struct mrf_inlet *inlet = inlet_of_locked(inbox, wc->qpn);
	int ret;

	/* One that was begun by a message which broke off, or of a line that is gone. */
	if (mrf_unlikely(wc->status != MRF_WC_OK || !inlet || inlet->wrong)) {
		mrf_shared_post(&inbox->slots, slot);
		return;
	}
	inlet->heard = true;
	inlet->last = slot->posting;
	slot->posting = 0;
	ret = take_frame_locked(inlet, slot, wc);
	if (mrf_likely(!ret))
		return;
	inlet->wrong = ret;
	inlet->origin->barred = mrf_now_ms() + MRF_BARRED_MS;
	mrf_shared_post(&inbox->slots, slot);
	mrf_agent_kick(inbox->ep->agent, &inbox->kick);
}

static void noted_locked(struct mrf_inbox *inbox, const struct mrf_wc *wc)
{
	struct mrf_inlet *inlet = inlet_of_locked(inbox, wc->qpn);

	if (!inlet)
		return;
	inlet->noting = false;
	if (wc->status == MRF_WC_OK)
		mrf_inbox_owe_locked(inlet);
}

/* How a grant went, or a part of a long message. */
static void pair_completed_locked(struct mrf_inbox *inbox, const struct mrf_wc *wc)
{
	struct mrf_inlet *inlet = inlet_of_locked(inbox, wc->qpn);

	if (!inlet)
		return;
	if (wc->wr_id == MRF_GRANT_ID)
		mrf_grant_sent_locked(inlet, wc);
	else
		mrf_intake_came_locked(inlet, wc);
}

static void frame_completed_locked(struct mrf_inbox *inbox, const struct mrf_wc *wc)
{
	if (mrf_likely(mrf_slots_is_one(wc->wr_id)))
		slot_locked(inbox, wc);
	else if (wc->wr_id == MRF_NOTE_ID)
		noted_locked(inbox, wc);
	else if (wc->wr_id == MRF_GRANT_ID || wc->wr_id == MRF_PIECE_ID)
		pair_completed_locked(inbox, wc);
	else
		inbox->calls->heard(inbox->ep, wc);
}

#define BATCH 16
/* Frames that one poll takes in, so that it returns while they go on coming. */
#define ROUNDS 4
/* All that the queue can hold. A bound, because other code may write to its memory by mistake. */
#define ALL_ROUNDS (MRF_INBOX_CQ / BATCH + 1)

static void take_in_locked(struct mrf_inbox *inbox, int rounds)
{
	struct mrf_wc wc[BATCH];
	int i, n;

	if (mrf_unlikely(!mrf_list_empty(&inbox->later)))
		mrf_inbox_not_later_locked(inbox);
	do {
		n = mrf_vcq_poll_from(inbox->vcq, wc, BATCH);
		for (i = 0; i < n; i++)
			frame_completed_locked(inbox, &wc[i]);
	} while (mrf_unlikely(n == BATCH) && --rounds);
	if (mrf_unlikely(mrf_lost_waits(inbox)))
		mrf_lost_again_locked(inbox);
	if (mrf_unlikely(!mrf_list_empty(&inbox->due)))
		mrf_inbox_tell_locked(inbox);
}

void mrf_arrive_poll_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	take_in_locked(inbox, ROUNDS);
}

void mrf_arrive_all_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	take_in_locked(inbox, ALL_ROUNDS);
}

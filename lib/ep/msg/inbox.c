/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/inbox.h"
#include "ep/msg/lost.h"
#include "loop/agent_calls.h"
#include "proto/frame.h"
#include "verbs/vqp.h"

void mrf_inbox_ask_for_slots_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (inbox->windows <= inbox->slots.count || inbox->slots.count >= inbox->slots.max)
		return;
	inbox->growing = true;
	mrf_agent_kick(inbox->ep->agent, &inbox->kick);
}

/* It doubles for a sender that uses it up, where the slots suffice. */
static void widen_window_locked(struct mrf_inbox *inbox, struct mrf_origin *origin)
{
	uint32_t more = mrf_min(origin->window, MRF_WINDOW_MAX - origin->window);

	if (!origin->used_up || !more)
		return;
	inbox->windows += more;
	mrf_inbox_ask_for_slots_locked(inbox);
	if (inbox->windows <= inbox->slots.count)
		origin->window += more;
	else
		inbox->windows -= more;
}

static int post_note_locked(const struct mrf_inlet *inlet, uint64_t taken)
{
	const struct mrf_frame_note note = { .taken = (uint32_t)taken,
					     .window = inlet->origin->window };
	uint8_t buf[MRF_FRAME_NOTE_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	const struct mrf_vwr wr = {
		.wr_id = MRF_NOTE_ID, .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge
	};

	sge.len = (uint32_t)mrf_frame_note_encode(&note, buf);
	return mrf_vconn_post(inlet->vconn, &wr);
}

static uint64_t taken_of(const struct mrf_origin *origin)
{
	return origin->next - origin->held;
}

/* Half of the window has been taken, or there was none. False: not yet, or a note is on the way. */
static bool is_due(const struct mrf_inlet *inlet)
{
	const struct mrf_origin *origin = inlet->origin;

	return inlet->vconn && !inlet->noting && !inlet->wrong &&
	       (origin->shut || (int64_t)(taken_of(origin) - origin->told) >= origin->window / 2);
}

void mrf_inbox_owe_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	if (is_due(inlet) && mrf_list_empty(&inlet->due))
		mrf_list_add_tail(&inlet->due, &inlet->inbox->due);
}

static void tell_one_locked(struct mrf_inlet *inlet)
{
	struct mrf_origin *origin = inlet->origin;
	uint64_t taken = taken_of(origin);

	if (!is_due(inlet))
		return;
	widen_window_locked(inlet->inbox, origin);
	/* If it cannot be sent, the connection is breaking. */
	inlet->noting = !post_note_locked(inlet, taken);
	origin->told = taken;
	origin->shut = false;
	origin->limit = mrf_max(origin->limit, taken + origin->window);
	origin->used_up = false;
}

void mrf_inbox_tell_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	mrf_lock_held(&inbox->ep->lock);
	mrf_lost_again_locked(inbox);
	/* Senders wait until the application has received some of what is kept. */
	if (inbox->kept > inbox->keep_max)
		return;
	while ((node = mrf_list_pop(&inbox->due)))
		tell_one_locked(mrf_list_entry(node, struct mrf_inlet, due));
}

void mrf_inbox_unkeep_locked(struct mrf_inbox *inbox, const struct mrf_message *message)
{
	mrf_lock_held(&inbox->ep->lock);
	inbox->kept -= sizeof(*message) + message->len;
}

void mrf_inbox_give_slot_locked(struct mrf_inbox *inbox, struct mrf_slot *slot)
{
	struct mrf_origin *origin = slot->origin;
	struct mrf_inlet *inlet = origin->inlet;

	mrf_lock_held(&inbox->ep->lock);
	origin->held--;
	mrf_shared_post(&inbox->slots, slot);
	if (inlet)
		mrf_inbox_owe_locked(inlet);
}

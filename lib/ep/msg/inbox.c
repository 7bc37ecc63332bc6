/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/inbox.h"
#include "ep/msg/silent.h"
#include "loop/agent_calls.h"
#include "proto/frame.h"
#include "verbs/vcq.h"
#include "verbs/vdev.h"
#include "verbs/vqp.h"

void mrf_inbox_ask_for_slots_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (inbox->windows <= inbox->slots.count || inbox->slots.count >= inbox->slots.max)
		return;
	inbox->growing = true;
	mrf_agent_kick(inbox->ep->agent, &inbox->kick);
}

uint64_t mrf_origin_taken_upto(const struct mrf_origin *origin)
{
	uint64_t oldest = mrf_shared_oldest(&origin->inbox->slots, origin);

	mrf_lock_held(&origin->inbox->ep->lock);
	return mrf_min(origin->next - origin->held, oldest);
}

/* --- windows -------------------------------------------------------------------------- */

static bool windows_fit(const struct mrf_inbox *inbox)
{
	return inbox->windows <= inbox->slots.count;
}

static void set_window_locked(struct mrf_inlet *inlet, uint32_t window)
{
	if (inlet->counts)
		inlet->inbox->windows += window - inlet->origin->window;
	inlet->origin->window = window;
}

void mrf_inbox_count_window_locked(struct mrf_inlet *inlet, bool counts)
{
	struct mrf_inbox *inbox = inlet->inbox;

	mrf_lock_held(&inbox->ep->lock);
	if (inlet->counts == counts)
		return;
	inlet->counts = counts;
	inbox->windows += counts ? inlet->origin->window : -inlet->origin->window;
}

/* What it was allowed to send, it may have sent: the limit stays. */
static void take_back_locked(struct mrf_inlet *inlet)
{
	mrf_inbox_count_window_locked(inlet, false);
	if (inlet->origin->window == MRF_WINDOW_FIRST)
		return;
	set_window_locked(inlet, MRF_WINDOW_FIRST);
	inlet->origin->smaller = true;
	inlet->origin->used_up = false;
	mrf_inbox_owe_locked(inlet);
}

static void take_back_from_silent_locked(struct mrf_inbox *inbox)
{
	mrf_silent_look_locked(inbox);
	if (inbox->taken_back == inbox->looked)
		return;
	inbox->taken_back = inbox->looked;
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		if (mrf_silent(inlet))
			take_back_locked(inlet);
	}
}

/*
 * It doubles for a sender that uses it up, if there is a slot for each frame of all windows. If not,
 * silent lines give up theirs; and if there are too few slots even so, and will not be more, each
 * line falls back to the first window as soon as it is told of it.
 */
static void fit_window_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;
	struct mrf_origin *origin = inlet->origin;
	uint32_t before = origin->window;

	if (!mrf_silent(inlet))
		mrf_inbox_count_window_locked(inlet, true);
	if (origin->used_up)
		set_window_locked(inlet, mrf_min(2 * before, (uint32_t)MRF_WINDOW_MAX));
	if (windows_fit(inbox))
		return;
	mrf_inbox_ask_for_slots_locked(inbox);
	take_back_from_silent_locked(inbox);
	/* It may be silent itself, and have given up its own. */
	if (!windows_fit(inbox))
		set_window_locked(inlet, mrf_min(before, origin->window));
	if (!windows_fit(inbox) && inbox->slots.count >= inbox->slots.max)
		set_window_locked(inlet, MRF_WINDOW_FIRST);
}

/* --- notes ---------------------------------------------------------------------------- */

bool mrf_inbox_note_locked(struct mrf_inlet *inlet, uint64_t taken, uint32_t window)
{
	const struct mrf_frame_note note = { .flags = inlet->origin->offers_only
							      ? MRF_FRAME_OFFERS_ONLY
							      : 0,
					     .taken = (uint32_t)taken,
					     .window = window };
	uint8_t buf[MRF_FRAME_NOTE_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	const struct mrf_vwr wr = {
		.wr_id = MRF_NOTE_ID, .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge
	};

	mrf_lock_held(&inlet->inbox->ep->lock);
	sge.len = (uint32_t)mrf_frame_note_encode(&note, buf);
	inlet->noting = !mrf_vconn_post(inlet->vconn, &wr);
	return inlet->noting;
}

/* There is room again for bytes of one that was told otherwise. */
static bool may_send_bytes_again_locked(const struct mrf_origin *origin)
{
	return origin->offers_only && mrf_inbox_has_room_locked(origin->inbox, origin);
}

void mrf_inbox_close_line_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	inlet->closing = true;
	mrf_agent_kick(inlet->inbox->ep->agent, &inlet->inbox->kick);
}

/* Half of the window has been taken, or there was none, or it has become smaller. */
static bool needs_note_locked(const struct mrf_origin *origin)
{
	return origin->shut || origin->smaller || origin->unsure ||
	       may_send_bytes_again_locked(origin) ||
	       (int64_t)(mrf_origin_taken(origin) - origin->told) >= origin->window / 2;
}

/* False: not yet, or a note is on the way. */
static bool is_due_locked(const struct mrf_inlet *inlet)
{
	return inlet->vconn && !inlet->noting && !inlet->wrong && !inlet->closing &&
	       !inlet->parting &&
	       (needs_note_locked(inlet->origin) || mrf_origin_owes(inlet->origin));
}

static void leave_full_locked(struct mrf_inlet *inlet)
{
	inlet->in_full = false;
	mrf_list_del(&inlet->due);
}

void mrf_inbox_owe_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	if (!is_due_locked(inlet))
		return;
	if (mrf_unlikely(inlet->in_full && (mrf_origin_owes(inlet->origin) ||
					    mrf_inbox_has_places_locked(inlet->inbox))))
		leave_full_locked(inlet);
	if (mrf_list_empty(&inlet->due))
		mrf_list_add_tail(&inlet->due, &inlet->inbox->due);
}

static void put_in_full_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;

	/* From now on the agent looks there now and then. */
	if (mrf_list_empty(&inbox->full))
		mrf_agent_kick(inbox->ep->agent, &inbox->kick);
	mrf_list_add_tail(&inlet->due, &inbox->full);
	inlet->in_full = true;
}

/* If it cannot be sent, its initiator is told in the welcome of another line. */
static bool send_note_locked(struct mrf_inlet *inlet, uint32_t window)
{
	if (mrf_inbox_note_locked(inlet, mrf_origin_tells(inlet->origin), window))
		return true;
	mrf_inbox_close_line_locked(inlet);
	return false;
}

/* What was taken is told, if it wants to know, but it may send no more than it might already. */
static void tell_without_room_locked(struct mrf_inlet *inlet)
{
	struct mrf_origin *origin = inlet->origin;
	uint64_t tells = mrf_origin_tells(origin);

	if (mrf_origin_owes(origin)) {
		if (!send_note_locked(inlet, (uint32_t)(origin->limit - tells)))
			return;
		origin->told = tells;
		origin->unsure = false;
		origin->smaller = true;
	}
	put_in_full_locked(inlet);
}

/* The application may answer, and a frame of the answer can say it: that is waited for once. */
static bool can_wait_locked(struct mrf_inlet *inlet)
{
	if (inlet->later || !inlet->reverse || needs_note_locked(inlet->origin))
		return false;
	inlet->later = true;
	mrf_list_add_tail(&inlet->due, &inlet->inbox->later);
	return true;
}

void mrf_inbox_not_later_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	mrf_lock_held(&inbox->ep->lock);
	while ((node = mrf_list_pop(&inbox->later))) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, due);

		inlet->later = is_due_locked(inlet);
		if (inlet->later)
			mrf_list_add_tail(node, &inbox->due);
	}
}

/* When some of what is kept has been received, its initiator may be told something better. */
static void look_again_if_room_locked(struct mrf_inlet *inlet)
{
	if (mrf_unlikely(inlet->origin->offers_only && inlet->vconn && mrf_list_empty(&inlet->due)))
		put_in_full_locked(inlet);
}

static void tell_one_locked(struct mrf_inlet *inlet)
{
	struct mrf_origin *origin = inlet->origin;

	inlet->in_full = false;
	if (is_due_locked(inlet) && can_wait_locked(inlet))
		return;
	inlet->later = false;
	if (!is_due_locked(inlet)) {
		look_again_if_room_locked(inlet);
		return;
	}
	/* It waits until the application has received some of what is kept. */
	if (!mrf_inbox_has_places_locked(inlet->inbox)) {
		tell_without_room_locked(inlet);
		return;
	}
	origin->offers_only = !mrf_inbox_has_room_locked(inlet->inbox, origin);
	fit_window_locked(inlet);
	if (!send_note_locked(inlet, origin->window))
		return;
	mrf_origin_told(origin);
	origin->shut = origin->smaller = origin->unsure = origin->used_up = false;
	look_again_if_room_locked(inlet);
}

void mrf_inbox_tell_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	mrf_lock_held(&inbox->ep->lock);
	while ((node = mrf_list_pop(&inbox->due)))
		tell_one_locked(mrf_list_entry(node, struct mrf_inlet, due));
}

/* --- what is kept --------------------------------------------------------------------- */

static size_t bytes_of(const struct mrf_message *message)
{
	return message->offer.is ? 0 : message->len;
}

void mrf_inbox_keep_locked(struct mrf_inbox *inbox, const struct mrf_message *message)
{
	mrf_lock_held(&inbox->ep->lock);
	inbox->messages++;
	inbox->kept += bytes_of(message);
	message->origin->bytes += bytes_of(message);
	inbox->most = mrf_max(inbox->most, inbox->kept);
}

static void look_at_all_full_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	inbox->most = inbox->kept;
	while ((node = mrf_list_pop(&inbox->full)))
		mrf_list_add_tail(node, &inbox->due);
}

/*
 * A message of that line is no longer kept. The shares of all others grow, too: they are looked at
 * when that makes much of a difference to them, and otherwise by the agent.
 */
static void look_at_full_locked(struct mrf_inbox *inbox, struct mrf_inlet *inlet)
{
	bool over = inbox->most > inbox->keep_max && inbox->kept <= inbox->keep_max;

	if (inlet && !mrf_list_empty(&inlet->due)) {
		mrf_list_del(&inlet->due);
		mrf_list_add_tail(&inlet->due, &inbox->due);
	}
	if (over || inbox->most - inbox->kept >= inbox->keep_max / 64)
		look_at_all_full_locked(inbox);
}

bool mrf_inbox_has_full_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (mrf_list_empty(&inbox->full))
		return false;
	if (inbox->kept < inbox->most) {
		look_at_all_full_locked(inbox);
		mrf_inbox_tell_locked(inbox);
	}
	return !mrf_list_empty(&inbox->full);
}

void mrf_inbox_unkeep_locked(struct mrf_inbox *inbox, const struct mrf_message *message)
{
	bool was_full = !mrf_inbox_has_places_locked(inbox);

	mrf_lock_held(&inbox->ep->lock);
	inbox->messages--;
	inbox->kept -= bytes_of(message);
	message->origin->bytes -= bytes_of(message);
	if (mrf_likely(mrf_list_empty(&inbox->full)))
		return;
	if (was_full)
		look_at_all_full_locked(inbox);
	else
		look_at_full_locked(inbox, message->origin->inlet);
}

void mrf_inbox_take_kept_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	mrf_lock_held(&inbox->ep->lock);
	mrf_match_take(mrf_inbox_match(inbox, message->tagged), &message->match);
	mrf_inbox_unkeep_locked(inbox, message);
}

bool mrf_inbox_has_room_locked(const struct mrf_inbox *inbox, const struct mrf_origin *origin)
{
	size_t others = inbox->kept - origin->bytes;

	mrf_lock_held(&inbox->ep->lock);
	return inbox->kept <= inbox->keep_max && origin->bytes <= (inbox->keep_max - others) / 4;
}

/* --- what is taken -------------------------------------------------------------------- */

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

void mrf_inbox_free_message_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	mrf_lock_held(&inbox->ep->lock);
	if (message->slot)
		mrf_inbox_give_slot_locked(inbox, message->slot);
	else
		free(message);
}

/* --- places --------------------------------------------------------------------------- */

static unsigned depth_max(const struct mrf_inbox *inbox)
{
	return mrf_min(MRF_INBOX_CQ, mrf_vdev_limits(inbox->ep->domain->vdev)->max_cqe);
}

/* It is as long as it has to be: 128 bytes for each completion, and most endpoints have few lines. */
static int fit_queue(struct mrf_inbox *inbox, unsigned n)
{
	unsigned depth = inbox->depth;
	int ret;

	while (depth < inbox->places + inbox->slots.count + n)
		depth = 2 * depth + 1;
	depth = mrf_min(depth, depth_max(inbox));
	if (depth <= inbox->depth)
		return 0;
	ret = mrf_vcq_grow(inbox->vcq, depth);
	if (!ret)
		inbox->depth = depth;
	return ret;
}

int mrf_inbox_count_places(struct mrf_inbox *inbox, unsigned n)
{
	int ret;

	if (inbox->places + n + MRF_SLOTS_MAX > depth_max(inbox))
		return -FI_ENOSPC;
	ret = fit_queue(inbox, n);
	if (!ret)
		inbox->places += n;
	return ret;
}

int mrf_inbox_expect_slots(struct mrf_inbox *inbox)
{
	return fit_queue(inbox, MRF_SLOTS_CHUNK);
}

void mrf_inbox_give_places(struct mrf_inbox *inbox, unsigned n)
{
	inbox->places -= n;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/grant.h"
#include "ep/msg/multi.h"
#include "ep/msg/pull.h"
#include "mr/desc.h"

static const struct mrf_why no_memory = {
	FI_ENOMEM, 4338, "there is no memory to ask for the bytes of a message: it is lost"
};
static const struct mrf_why no_pair = {
	FI_ENOMEM, 4335,
	"there are no resources to ask this sender for bytes of its messages: the message is lost"
};
static const struct mrf_why withdrawn = {
	FI_ECANCELED, 4336, "the sender has given the message up before all of it had come"
};

static struct mrf_message *message_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_message, offer.node);
}

static struct mrf_pull *pull_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_pull, node);
}

static struct mrf_inbox *inbox_of(const struct mrf_pull *pull)
{
	return pull->message->origin->inbox;
}

/* --- memory --------------------------------------------------------------------------- */

/* NULL: there is none. */
static struct mrf_pull *new_pull_locked(struct mrf_inbox *inbox)
{
	struct mrf_pull *pull = inbox->spare_pull ? inbox->spare_pull : malloc(sizeof(*pull));

	inbox->spare_pull = NULL;
	/* What follows counts only as far as local says. */
	if (pull)
		memset(pull, 0, offsetof(struct mrf_pull, local.sge));
	return pull;
}

static void free_pull_locked(struct mrf_inbox *inbox, struct mrf_pull *pull)
{
	if (inbox->spare_pull)
		free(pull);
	else
		inbox->spare_pull = pull;
}

/* --- the end -------------------------------------------------------------------------- */

void mrf_pull_complete_locked(struct mrf_pull *pull, const struct mrf_why *why)
{
	struct mrf_message *message = pull->message;
	struct mrf_origin *origin = message->origin;

	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_del(&pull->node);
	origin->pulls -= pull->has_turn;
	message->offer.fetched = !why && pull->arrived == message->len;
	mrf_deliver_end_locked(origin->inbox, message->late.recv, message, why);
	free_pull_locked(origin->inbox, pull); /* which may have the reason */
	mrf_pull_go_locked(origin);
}

static void begin_step_locked(struct mrf_pull *pull, enum mrf_pull_step step)
{
	struct mrf_inbox *inbox = inbox_of(pull);

	pull->step = step;
	pull->busy = true;
	mrf_list_del(&pull->node);
	mrf_list_add_tail(&pull->node, &inbox->steps);
	atomic_store(&inbox->ep->source.left, true);
}

void mrf_pull_let_go_locked(struct mrf_pull *pull)
{
	mrf_lock_held(&inbox_of(pull)->ep->lock);
	if (pull->local.nuser || pull->local.temp) {
		begin_step_locked(pull, MRF_PULL_END);
		return;
	}
	mrf_local_drop(&inbox_of(pull)->ep->buf, &pull->local);
	mrf_pull_complete_locked(pull, pull->fails);
}

/* Nobody is at it, nothing of it comes any more, and all that is to come has, or it fails. */
static bool is_over(const struct mrf_pull *pull)
{
	return !pull->busy && !pull->copies && pull->granted == pull->arrived &&
	       (pull->fails || pull->arrived == pull->room);
}

static void fail_pull_locked(struct mrf_pull *pull, const struct mrf_why *why)
{
	pull->fails = why;
	if (is_over(pull))
		mrf_pull_let_go_locked(pull);
}

/* --- the beginning -------------------------------------------------------------------- */

static void wait_for_turn_locked(struct mrf_pull *pull)
{
	mrf_list_add_tail(&pull->node, &pull->message->origin->waiting);
	mrf_pull_go_locked(pull->message->origin);
}

static void pull_locked(struct mrf_inbox *inbox, struct mrf_message *message, uint64_t room)
{
	struct mrf_pull *pull = new_pull_locked(inbox);

	message->late.pull = pull;
	if (!pull) {
		message->offer.refused = true;
		mrf_deliver_end_locked(inbox, message->late.recv, message, &no_memory);
		return;
	}
	mrf_list_init(&pull->node);
	pull->message = message;
	pull->room = room;
	wait_for_turn_locked(pull);
}

bool mrf_pull_begin_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			   struct mrf_message *message)
{
	bool gone = message->offer.gone, more = false;
	uint64_t room;

	mrf_lock_held(&inbox->ep->lock);
	if (recv->multi)
		more = mrf_multi_take_locked(inbox, recv, message);
	room = mrf_min(message->len, mrf_deliver_room(recv, message).iov_len);
	message->offer.at = MRF_OFFER_PULLED;
	message->late.inbox = inbox;
	message->late.recv = recv;
	message->late.pull = NULL;
	if (gone)
		mrf_deliver_end_locked(inbox, recv, message, &withdrawn);
	else if (!room)
		mrf_deliver_end_locked(inbox, recv, message, NULL);
	else
		pull_locked(inbox, message, room);
	return more;
}

/* Is its only buffer in a pinned region? Then there is nothing to be done without the lock. */
static bool is_within_reach(struct mrf_pull *pull)
{
	const struct mrf_recv *recv = pull->message->late.recv;
	struct iovec room = mrf_deliver_room(recv, pull->message);
	struct mrf_sge sge = { .len = (uint32_t)pull->room };

	if (recv->more || !recv->desc ||
	    !mrf_desc_local(&inbox_of(pull)->ep->domain->space, recv->desc, FI_RECV,
			    (uintptr_t)room.iov_base, pull->room, &sge.addr, &sge.lkey))
		return false;
	mrf_local_describe(&pull->local, recv->desc, &sge);
	return true;
}

static void take_turn_locked(struct mrf_pull *pull)
{
	struct mrf_origin *origin = pull->message->origin;

	pull->has_turn = true;
	origin->pulls++;
	if (is_within_reach(pull))
		mrf_list_add_tail(&pull->node, &origin->turns);
	else
		begin_step_locked(pull, MRF_PULL_TAKE);
}

static void take_turns_locked(struct mrf_origin *origin)
{
	struct mrf_list *node;

	while (origin->pulls < MRF_PULLS && (node = mrf_list_pop(&origin->waiting)))
		take_turn_locked(pull_at(node));
}

void mrf_pull_go_locked(struct mrf_origin *origin)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	take_turns_locked(origin);
	if (origin->inlet)
		mrf_grant_go_locked(origin->inlet);
}

/* --- parts ---------------------------------------------------------------------------- */

/* After a line has been lost its sender may have given it up: that is known when it has asked. */
static bool is_sure(const struct mrf_pull *pull)
{
	const struct mrf_message *message = pull->message;

	return message->offer.number >= message->origin->begun ||
	       message->offer.number < message->origin->asked;
}

/* Is there a part of it that can be asked for now? */
static bool is_grantable_locked(struct mrf_pull *pull)
{
	if (pull->granted == pull->room || pull->fails || !is_sure(pull))
		return false;
	if (mrf_likely(mrf_local_reaches(&pull->local, pull->granted)))
		return true;
	if (pull->granted == pull->arrived)
		begin_step_locked(pull, MRF_PULL_REACH);
	return false;
}

/* There is no memory by way of which bytes could go on to a device. */
static void fail_apart_locked(struct mrf_origin *origin, const struct mrf_why *why)
{
	mrf_list_each_safe (node, &origin->turns) {
		struct mrf_pull *pull = pull_at(node);

		if (pull->local.kind != MRF_LOCAL_APART || pull->fails)
			continue;
		pull->why = *why;
		fail_pull_locked(pull, &pull->why);
	}
}

static void places_made_locked(struct mrf_copy *want, const struct mrf_why *why)
{
	struct mrf_landing *landing = mrf_landing_made_locked(want);

	if (why)
		fail_apart_locked(landing->origin, why);
	mrf_pull_go_locked(landing->origin);
	mrf_landing_rest_locked(landing);
}

/* False: no place is free for bytes of it that go on to a device. */
static bool takes_place_locked(struct mrf_pull *pull, uint64_t *len, struct mrf_sge *sge)
{
	pull->place =
		mrf_landing_find_locked(pull->message->origin->landing, sge, places_made_locked);
	*len = mrf_min(*len, MRF_STAGE_CHUNK);
	sge->len = (uint32_t)*len;
	return pull->place;
}

struct mrf_pull *mrf_pull_next_locked(struct mrf_origin *origin, uint64_t *len, struct mrf_sge *sge,
				      int *nsge)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each_safe (node, &origin->turns) {
		struct mrf_pull *pull = pull_at(node);
		uint32_t piece = pull->message->offer.piece;

		if (!is_grantable_locked(pull))
			continue;
		*len = mrf_min(pull->room - pull->granted, MRF_GRANT_BYTES);
		if (piece)
			*len = mrf_min(*len, (uint64_t)piece);
		*nsge = 1;
		if (mrf_likely(pull->local.kind != MRF_LOCAL_APART))
			*nsge = mrf_local_sges(&pull->local, pull->granted, len, sge,
					       MRF_LOCAL_SGE);
		else if (!takes_place_locked(pull, len, sge))
			continue;
		return pull;
	}
	return NULL;
}

void mrf_pull_granted_locked(struct mrf_pull *pull, uint64_t len)
{
	mrf_lock_held(&inbox_of(pull)->ep->lock);
	if (mrf_unlikely(pull->place != NULL))
		mrf_landing_take_locked(pull->message->origin->landing, pull->place, pull,
					pull->granted, len);
	pull->granted += len;
	mrf_list_del(&pull->node);
	mrf_list_add_tail(&pull->node, &pull->message->origin->turns);
}

static void copied_locked(struct mrf_copy *copy, const struct mrf_why *why)
{
	struct mrf_place *place = mrf_container_of(copy, struct mrf_place, copy);
	struct mrf_pull *pull = place->pull;
	struct mrf_origin *origin = pull->message->origin;

	mrf_landing_leave_locked(origin->landing, place);
	pull->copies--;
	if (why && !pull->fails) {
		pull->why = *why;
		pull->fails = &pull->why;
	}
	if (is_over(pull))
		mrf_pull_let_go_locked(pull);
	mrf_pull_go_locked(origin);
	mrf_landing_rest_locked(origin->landing);
}

/* What has come goes on to the device, unless nobody will have it. */
static void copy_on_locked(struct mrf_pull *pull, struct mrf_place *place)
{
	struct mrf_origin *origin = pull->message->origin;

	if (pull->fails) {
		mrf_landing_leave_locked(origin->landing, place);
		mrf_landing_rest_locked(origin->landing);
		return;
	}
	pull->copies++;
	place->copy.local = &pull->local;
	place->copy.over = copied_locked;
	mrf_copies_add_locked(&origin->inbox->copies, &place->copy);
}

void mrf_pull_came_locked(struct mrf_pull *pull, struct mrf_place *place, uint64_t len)
{
	mrf_lock_held(&inbox_of(pull)->ep->lock);
	pull->arrived += len;
	if (mrf_unlikely(place != NULL))
		copy_on_locked(pull, place);
	if (is_over(pull))
		mrf_pull_let_go_locked(pull);
}

/* --- the sender ----------------------------------------------------------------------- */

void mrf_pull_lost_locked(struct mrf_origin *origin)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	origin->lost = mrf_now_ms();
	mrf_list_each_safe (node, &origin->offers) {
		struct mrf_message *message = message_at(node);
		struct mrf_pull *pull = message->late.pull;

		if (message->offer.at != MRF_OFFER_PULLED || !pull)
			continue;
		pull->granted = pull->arrived;
		/* It may be why the line was lost. */
		if (!pull->busy && !mrf_local_open(&origin->inbox->ep->buf, &pull->local))
			fail_pull_locked(pull, &mrf_deliver_closed);
		else if (pull->fails)
			fail_pull_locked(pull, pull->fails);
	}
}

/* All that is wanted of it, though its receive has not completed yet. */
static bool has_come(const struct mrf_message *message)
{
	return message->offer.at == MRF_OFFER_PULLED &&
	       message->late.pull->arrived == message->late.pull->room;
}

void mrf_pull_refuse_locked(struct mrf_origin *origin)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each_safe (node, &origin->offers) {
		struct mrf_message *message = message_at(node);

		if (message->offer.at != MRF_OFFER_PULLED || has_come(message))
			continue;
		message->offer.refused = true;
		fail_pull_locked(message->late.pull, &no_pair);
	}
}

void mrf_pull_give_up_locked(struct mrf_message *message, const struct mrf_why *why)
{
	struct mrf_inbox *inbox = message->origin->inbox;

	mrf_lock_held(&inbox->ep->lock);
	if (has_come(message))
		return;
	message->offer.gone = true;
	mrf_list_del(&message->offer.node);
	switch (message->offer.at) {
	case MRF_OFFER_KEPT:
		mrf_inbox_take_kept_locked(inbox, message);
		mrf_deliver_drop_locked(inbox, message);
		return;
	case MRF_OFFER_CLAIMED: /* its receive fails */
		return;
	case MRF_OFFER_PULLED:
		fail_pull_locked(message->late.pull, why);
		return;
	}
}

void mrf_pull_withdrawn_locked(struct mrf_origin *origin, uint64_t from, uint64_t upto)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each_safe (node, &origin->offers) {
		uint64_t number = message_at(node)->offer.number;

		if (number >= from && number < upto)
			mrf_pull_give_up_locked(message_at(node), &withdrawn);
	}
}

bool mrf_pull_asked_locked(const struct mrf_origin *origin, uint64_t number)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each (node, &origin->offers) {
		if (message_at(node)->offer.number != number)
			continue;
		message_at(node)->offer.ends = true;
		return true;
	}
	return false;
}

/* --- nobody works with it any more ----------------------------------------------------- */

static void drop_pulls(struct mrf_origin *origin)
{
	mrf_list_each_safe (node, &origin->offers) {
		struct mrf_message *message = message_at(node);

		if (message->offer.at != MRF_OFFER_PULLED)
			continue;
		mrf_list_del(&message->late.pull->node);
		mrf_local_drop(&origin->inbox->ep->buf, &message->late.pull->local);
		free(message->late.pull);
		mrf_deliver_drop_reached(message);
	}
}

void mrf_pull_drop_all(struct mrf_inbox *inbox)
{
	mrf_list_each (node, &inbox->origins)
		drop_pulls(mrf_list_entry(node, struct mrf_origin, node));
	free(inbox->spare_pull);
}

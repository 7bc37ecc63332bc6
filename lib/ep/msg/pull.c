/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/param.h"
#include "base/user.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/grant.h"
#include "ep/msg/multi.h"
#include "ep/msg/pull.h"
#include "loop/agent_calls.h"

static const struct mrf_why no_memory = {
	FI_ENOMEM, 4338, "there is no memory to receive a long message: it is lost"
};
static const struct mrf_why no_pair = {
	FI_ENOMEM, 4335,
	"there are no resources to receive long messages from this sender: the message is lost"
};
static const struct mrf_why withdrawn = {
	FI_ECANCELED, 4336, "the sender has given the message up before all of it had come"
};
static const struct mrf_why orphaned = {
	FI_ECONNRESET, 4337,
	"the sender has gone before all of the message had come, and has not connected again for "
	"FI_MRFAB_CONN_TIMEOUT milliseconds"
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

/* --- the end -------------------------------------------------------------------------- */

/* Nothing is held for it, and nothing of it is on the way. why: NULL, it has come. */
static void complete_pull_locked(struct mrf_pull *pull, const struct mrf_why *why)
{
	struct mrf_message *message = pull->message;
	struct mrf_origin *origin = message->origin;

	mrf_list_del(&pull->node);
	origin->pulls -= pull->has_turn;
	message->offer.fetched = !why && pull->arrived == message->len;
	free(pull);
	mrf_deliver_end_locked(origin->inbox, message->late.recv, message, why);
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

/* What takes long is done without the lock: copies to the buffers, and letting go of memory. */
static void let_pull_go_locked(struct mrf_pull *pull)
{
	if (pull->local.nuser || pull->local.temp) {
		begin_step_locked(pull, MRF_PULL_END);
		return;
	}
	mrf_local_drop(&inbox_of(pull)->ep->buf, &pull->local);
	complete_pull_locked(pull, pull->fails);
}

static void fail_pull_locked(struct mrf_pull *pull, const struct mrf_why *why)
{
	pull->fails = why;
	if (!pull->busy)
		let_pull_go_locked(pull);
}

/* --- the beginning -------------------------------------------------------------------- */

static void wait_for_turn_locked(struct mrf_pull *pull)
{
	mrf_list_add_tail(&pull->node, &pull->message->origin->waiting);
	mrf_pull_go_locked(pull->message->origin);
}

static void pull_locked(struct mrf_inbox *inbox, struct mrf_message *message, uint64_t room)
{
	struct mrf_pull *pull = calloc(1, sizeof(*pull));

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

static void take_turns_locked(struct mrf_origin *origin)
{
	struct mrf_list *node;

	while (origin->pulls < MRF_PULLS && (node = mrf_list_pop(&origin->waiting))) {
		pull_at(node)->has_turn = true;
		origin->pulls++;
		begin_step_locked(pull_at(node), MRF_PULL_TAKE);
	}
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
		*nsge = mrf_local_sges(&pull->local, pull->granted, len, sge, MRF_LOCAL_SGE);
		return pull;
	}
	return NULL;
}

void mrf_pull_granted_locked(struct mrf_pull *pull, uint64_t len)
{
	mrf_lock_held(&inbox_of(pull)->ep->lock);
	pull->granted += len;
	mrf_list_del(&pull->node);
	mrf_list_add_tail(&pull->node, &pull->message->origin->turns);
}

void mrf_pull_came_locked(struct mrf_pull *pull, uint64_t len)
{
	mrf_lock_held(&inbox_of(pull)->ep->lock);
	pull->arrived += len;
	if (pull->arrived == pull->room)
		let_pull_go_locked(pull);
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
	}
}

void mrf_pull_refuse_locked(struct mrf_origin *origin)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each_safe (node, &origin->offers) {
		struct mrf_message *message = message_at(node);

		if (message->offer.at != MRF_OFFER_PULLED)
			continue;
		message->offer.refused = true;
		fail_pull_locked(message->late.pull, &no_pair);
	}
}

/* Nobody is told of one that no receive has matched. */
static void give_up_offer_locked(struct mrf_message *message, const struct mrf_why *why)
{
	struct mrf_inbox *inbox = message->origin->inbox;

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
			give_up_offer_locked(message_at(node), &withdrawn);
	}
}

bool mrf_pull_is_offered_locked(const struct mrf_origin *origin, uint64_t number)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	mrf_list_each (node, &origin->offers) {
		if (message_at(node)->offer.number == number)
			return true;
	}
	return false;
}

/* --- steps ---------------------------------------------------------------------------- */

static int take(struct mrf_buf *buf, struct mrf_pull *pull)
{
	struct mrf_recv *recv = pull->message->late.recv;
	struct iovec iov[MRF_LIMIT_IOV];
	struct mrf_local_req req = {
		.iov = iov, .count = 1, .total = pull->room, .arrives = true, .message = true
	};

	if (recv->more) {
		req.count = mrf_deliver_cut(recv, pull->room, iov);
		req.desc = recv->more->desc;
	} else {
		iov[0] = mrf_deliver_room(recv, pull->message);
		iov[0].iov_len = pull->room;
		req.desc = recv->desc ? &recv->desc : NULL;
	}
	return mrf_local_take(buf, &req, &pull->local);
}

static int end_pull(struct mrf_buf *buf, struct mrf_pull *pull)
{
	int ret = 0;

	if (pull->local.nuser && !pull->fails)
		ret = mrf_user_put(mrf_local_user(&pull->local), (size_t)pull->local.nuser,
				   pull->local.copy, true);
	mrf_local_drop(buf, &pull->local);
	return ret;
}

static int do_step(struct mrf_buf *buf, struct mrf_pull *pull)
{
	switch (pull->step) {
	case MRF_PULL_TAKE:
		return take(buf, pull);
	case MRF_PULL_REACH:
		return mrf_local_reach(buf, &pull->local, pull->arrived);
	case MRF_PULL_END:
		break;
	}
	return end_pull(buf, pull);
}

/* Its buffers cannot be brought within reach, and nothing is held. */
static void out_of_reach_locked(struct mrf_pull *pull, int ret, const struct mrf_refusal *said)
{
	struct mrf_why why;

	mrf_why_said(&why, -ret, said, "the receive's buffer cannot be reached by the device");
	/* What is known of its other buffers. */
	mrf_local_drop(&inbox_of(pull)->ep->buf, &pull->local);
	if (mrf_deliver_is_open(inbox_of(pull), pull->message->late.recv))
		complete_pull_locked(pull, &why);
	else
		complete_pull_locked(pull, &mrf_deliver_closed);
}

static void did_step_locked(struct mrf_pull *pull, int ret, const struct mrf_refusal *said)
{
	pull->busy = false;
	if (pull->step == MRF_PULL_END) {
		complete_pull_locked(pull,
				     ret && !pull->fails ? &mrf_deliver_unmapped : pull->fails);
	} else if (ret) {
		out_of_reach_locked(pull, ret, said);
	} else if (pull->fails) {
		let_pull_go_locked(pull);
	} else {
		mrf_list_add_tail(&pull->node, &pull->message->origin->turns);
		mrf_pull_go_locked(pull->message->origin);
	}
}

static void step_one_locked(struct mrf_inbox *inbox, struct mrf_pull *pull)
{
	struct mrf_refusal said = { .code = 0 };
	int ret;

	inbox->copying++;
	mrf_lock_release(&inbox->ep->lock);
	mrf_refuse_catch(&said);
	ret = do_step(&inbox->ep->buf, pull);
	mrf_refuse_catch(NULL);
	mrf_lock_take(&inbox->ep->lock);
	inbox->copying--;
	did_step_locked(pull, ret, &said);
}

static void step_all_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&inbox->steps)))
		step_one_locked(inbox, pull_at(node));
	mrf_inbox_tell_locked(inbox);
}

static bool work_steps(struct mrf_job *job)
{
	struct mrf_inbox *inbox = mrf_container_of(job, struct mrf_inbox, step_job);

	mrf_lock_take(&inbox->ep->lock);
	step_all_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	return false;
}

static void steps_over(struct mrf_job *job)
{
	struct mrf_inbox *inbox = mrf_container_of(job, struct mrf_inbox, step_job);

	mrf_lock_take(&inbox->ep->lock);
	inbox->stepping = false;
	inbox->copying--;
	mrf_pull_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
}

/* False: there is no thread for it. */
static bool hand_steps_over_locked(struct mrf_inbox *inbox)
{
	int ret;

	inbox->step_job = (struct mrf_job){ .work = work_steps, .over = steps_over };
	mrf_list_init(&inbox->step_job.node);
	inbox->stepping = true;
	inbox->copying++;
	mrf_lock_release(&inbox->ep->lock);
	ret = mrf_agent_job(inbox->ep->agent, MRF_CREW_MEMORY, &inbox->step_job);
	mrf_lock_take(&inbox->ep->lock);
	if (!ret)
		return true;
	inbox->stepping = false;
	inbox->copying--;
	return false;
}

static void run_steps_locked(struct mrf_inbox *inbox)
{
	if (mrf_list_empty(&inbox->steps))
		return;
	if (pthread_equal(pthread_self(), inbox->ep->agent->thread) &&
	    (inbox->stepping || hand_steps_over_locked(inbox)))
		return;
	step_all_locked(inbox);
}

void mrf_pull_late_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	run_steps_locked(inbox);
	mrf_deliver_late_locked(inbox);
}

/* --- senders that do not come again --------------------------------------------------- */

static int64_t patience(void)
{
	return (int64_t)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

static void give_up_all_locked(struct mrf_origin *origin)
{
	mrf_list_each_safe (node, &origin->offers)
		give_up_offer_locked(message_at(node), &orphaned);
}

/* How long until the next one is given up; -1: there is none. */
static int64_t give_up_orphans_locked(struct mrf_inbox *inbox)
{
	int64_t now = mrf_now_ms(), next = -1;

	mrf_list_each (node, &inbox->origins) {
		struct mrf_origin *origin = mrf_list_entry(node, struct mrf_origin, node);
		int64_t left = origin->lost + patience() - now;

		if (origin->inlet || mrf_list_empty(&origin->offers))
			continue;
		if (left <= 0)
			give_up_all_locked(origin);
		else
			next = next < 0 || left < next ? left : next;
	}
	return next;
}

static void look_for_orphans(struct mrf_timer *timer)
{
	struct mrf_inbox *inbox = mrf_container_of(timer, struct mrf_inbox, orphans);
	int64_t next;

	mrf_lock_take(&inbox->ep->lock);
	next = give_up_orphans_locked(inbox);
	mrf_pull_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	if (next >= 0)
		mrf_timer_set(inbox->ep->agent, &inbox->orphans, next);
}

void mrf_pull_orphaned(struct mrf_inbox *inbox)
{
	if (!mrf_timer_runs(&inbox->orphans))
		mrf_timer_set(inbox->ep->agent, &inbox->orphans, patience());
}

void mrf_pull_init(struct mrf_inbox *inbox)
{
	mrf_list_init(&inbox->steps);
	inbox->orphans.over = look_for_orphans;
}

void mrf_pull_end(struct mrf_inbox *inbox)
{
	mrf_timer_stop(inbox->ep->agent, &inbox->orphans);
}

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
}

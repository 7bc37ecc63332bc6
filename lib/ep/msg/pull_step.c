/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <rdma/fi_errno.h>
#include "base/user.h"
#include "contract/limits.h"
#include "ep/model/ep.h"
#include "ep/msg/pull_step.h"
#include "loop/agent_calls.h"

static int take(struct mrf_buf *buf, struct mrf_pull *pull)
{
	struct mrf_recv *recv = pull->message->late.recv;
	struct iovec iov[MRF_LIMIT_IOV];
	struct mrf_local_req req = { .iov = iov,
				     .count = 1,
				     .total = pull->room,
				     .arrives = true,
				     .message = true,
				     .apart = true };

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
	mrf_local_drop(&pull->message->origin->inbox->ep->buf, &pull->local);
	if (mrf_deliver_is_open(pull->message->origin->inbox, pull->message->late.recv))
		mrf_pull_complete_locked(pull, &why);
	else
		mrf_pull_complete_locked(pull, &mrf_deliver_closed);
}

static void did_step_locked(struct mrf_pull *pull, int ret, const struct mrf_refusal *said)
{
	pull->busy = false;
	if (!ret && pull->local.kind == MRF_LOCAL_APART)
		ret = mrf_landing_need_locked(pull->message->origin);
	if (pull->step == MRF_PULL_END) {
		mrf_pull_complete_locked(pull,
					 ret && !pull->fails ? &mrf_deliver_unmapped : pull->fails);
	} else if (ret) {
		out_of_reach_locked(pull, ret, said);
	} else if (pull->fails) {
		mrf_pull_let_go_locked(pull);
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
		step_one_locked(inbox, mrf_list_entry(node, struct mrf_pull, node));
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
	mrf_pull_step_late_locked(inbox);
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

void mrf_pull_step_late_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	run_steps_locked(inbox);
	mrf_copies_go_locked(&inbox->copies);
	mrf_deliver_late_locked(inbox);
}

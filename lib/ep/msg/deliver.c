/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/known.h"
#include "base/log.h"
#include "base/user.h"
#include "buf/stage.h"
#include "contract/limits.h"
#include "ep/model/ep.h"
#include "ep/msg/deliver.h"
#include "ep/msg/grant.h"
#include "ep/msg/multi.h"
#include "ep/msg/report.h"
#include "mr/desc.h"

const struct mrf_why mrf_deliver_closed = {
	FI_ECANCELED, 4321,
	"the region of the receive's buffer was closed before a message came: the message is lost"
};
const struct mrf_why mrf_deliver_unmapped = {
	FI_EFAULT, 4322,
	"the receive's buffer is not mapped, or may not be written: the message is lost"
};

/* What became of the copy. */
static const struct mrf_why *why_of(int ret, const struct mrf_why *why)
{
	if (mrf_likely(!ret) || why)
		return why;
	return ret == -FI_ECANCELED ? &mrf_deliver_closed : &mrf_deliver_unmapped;
}

/* --- the end -------------------------------------------------------------------------- */

void mrf_recv_put_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	mrf_lock_held(&inbox->ep->lock);
	if (mrf_unlikely(recv->more != NULL)) {
		free(recv->more);
		recv->more = NULL;
	}
	if (mrf_unlikely(recv->multi != NULL)) {
		free(recv->multi);
		recv->multi = NULL;
	}
	mrf_list_add_head(&recv->match.all, &inbox->free_recvs);
}

/* Its sender is told that it is over, unless it knows. */
static __attribute__((noinline)) void drop_offer_locked(struct mrf_inbox *inbox,
							struct mrf_message *message)
{
	const struct mrf_offered *offer = &message->offer;
	struct mrf_inlet *inlet = message->origin->inlet;

	mrf_list_del(&message->offer.node);
	if (!inlet || offer->gone || (offer->fetched && !offer->ends)) {
		mrf_inbox_free_message_locked(inbox, message);
		return;
	}
	mrf_list_add_tail(&message->late.node, &inlet->ends);
	mrf_grant_go_locked(inlet);
}

void mrf_deliver_drop_locked(struct mrf_inbox *inbox, struct mrf_message *message)
{
	mrf_lock_held(&inbox->ep->lock);
	message->origin->kept--;
	if (mrf_unlikely(message->offer.is))
		drop_offer_locked(inbox, message);
	else
		mrf_inbox_free_message_locked(inbox, message);
}

/* Of a receive of many messages, which goes on if it is not over. */
static void finish_part_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			       struct mrf_message *message, const struct mrf_why *why)
{
	bool over = mrf_multi_give(recv);

	mrf_report_end_locked(inbox->ep, recv, message, why);
	if (over && recv->multi->canceled)
		mrf_deliver_canceled_locked(inbox, recv);
	else if (over)
		mrf_recv_put_locked(inbox, recv);
	mrf_deliver_drop_locked(inbox, message);
}

static MRF_ALWAYS_INLINE void finish_recv_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
						 struct mrf_message *message,
						 const struct mrf_why *why)
{
	if (mrf_unlikely(recv->multi != NULL)) {
		finish_part_locked(inbox, recv, message, why);
		return;
	}
	mrf_report_end_locked(inbox->ep, recv, message, why);
	mrf_recv_put_locked(inbox, recv);
	mrf_deliver_drop_locked(inbox, message);
}

void mrf_deliver_end_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			    struct mrf_message *message, const struct mrf_why *why)
{
	mrf_lock_held(&inbox->ep->lock);
	if (why && recv->multi)
		mrf_multi_leave_locked(inbox, recv);
	finish_recv_locked(inbox, recv, message, why);
}

void mrf_deliver_canceled_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	const char *text = "canceled by fi_cancel: no message had come for it";

	mrf_lock_held(&inbox->ep->lock);
	if (recv->multi) {
		recv->multi->canceled = false;
		text = "canceled by fi_cancel: there was room for more messages";
	}
	mrf_report_error_locked(inbox->ep, recv, NULL, FI_ECANCELED, 4323, text);
	mrf_recv_put_locked(inbox, recv);
}

/* --- copying -------------------------------------------------------------------------- */

/* Its buffers, and a descriptor of each. */
static struct mrf_staged described(const struct mrf_recv *recv)
{
	if (recv->more)
		return (struct mrf_staged){ recv->more->iov, recv->more->desc, recv->more->count };
	return (struct mrf_staged){ NULL, &recv->desc, recv->len != 0 };
}

/* With FI_MR_HMEM only, memory of the host needs no descriptor. */
static bool is_region_open(const struct mrf_mr_space *space, const void *desc)
{
	return mrf_desc_live(space, desc) || (!desc && !(space->mode & FI_MR_LOCAL));
}

bool mrf_deliver_is_open(const struct mrf_inbox *inbox, const struct mrf_recv *recv)
{
	const struct mrf_mr_space *space = &inbox->ep->domain->space;
	const struct mrf_staged all = described(recv);
	size_t i;

	if (!(space->mode & (FI_MR_LOCAL | FI_MR_HMEM)) || !all.desc)
		return true;
	for (i = 0; i < all.count; i++) {
		if (!is_region_open(space, all.desc[i]) && !(all.iov && !all.iov[i].iov_len))
			return false;
	}
	return true;
}

/* May a buffer of it be memory of a device? */
static bool may_be_device(const struct mrf_inbox *inbox, const struct mrf_recv *recv)
{
	return inbox->ep->domain->space.mode & FI_MR_HMEM && described(recv).desc &&
	       (recv->more || recv->desc);
}

/* Without waiting for anything. False: the copy is late. */
static bool copied_at_once(const struct mrf_inbox *inbox, const struct mrf_recv *recv,
			   const struct mrf_message *message)
{
	const struct mrf_mr_space *space = &inbox->ep->domain->space;
	struct iovec room = mrf_deliver_room(recv, message);
	size_t len = mrf_min(message->len, room.iov_len);
	uint64_t iova;
	uint32_t lkey;

	if (mrf_likely(!recv->more && recv->desc &&
		       mrf_desc_local(space, recv->desc, FI_RECV, (uintptr_t)room.iov_base, len,
				      &iova, &lkey))) {
		memcpy(room.iov_base, message->data, len);
		return true;
	}
	if (!mrf_deliver_is_open(inbox, recv))
		return false;
	return !len || (!recv->more && !may_be_device(inbox, recv) &&
			mrf_known_put(room.iov_base, message->data, len));
}

bool mrf_deliver_locked(struct mrf_inbox *inbox, struct mrf_recv *recv, struct mrf_message *message)
{
	struct mrf_ep *ep = inbox->ep;
	bool more = false;

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(recv->multi != NULL))
		more = mrf_multi_take_locked(inbox, recv, message);
	/* What is late keeps its place before what comes after it. */
	if (mrf_likely(mrf_list_empty(&inbox->late) && !inbox->copied &&
		       copied_at_once(inbox, recv, message))) {
		finish_recv_locked(inbox, recv, message, NULL);
		return more;
	}
	if (mrf_unlikely(!mrf_deliver_is_open(inbox, recv))) {
		mrf_deliver_end_locked(inbox, recv, message, &mrf_deliver_closed);
		return false;
	}
	message->late.inbox = inbox;
	message->late.recv = recv;
	mrf_list_add_tail(&message->late.node, &inbox->late);
	atomic_store(&ep->source.left, true);
	return more;
}

/* --- late ----------------------------------------------------------------------------- */

size_t mrf_deliver_cut(const struct mrf_recv *recv, size_t left, struct iovec *iov)
{
	size_t n;

	for (n = 0; left; n++) {
		iov[n] = recv->more->iov[n];
		iov[n].iov_len = mrf_min(iov[n].iov_len, left);
		left -= iov[n].iov_len;
	}
	return n;
}

static int copy_more(const struct mrf_recv *recv, const struct mrf_message *message, bool may_wait)
{
	struct iovec iov[MRF_LIMIT_IOV];
	size_t n = mrf_deliver_cut(recv, mrf_min(message->len, recv->len), iov);

	return mrf_user_put(iov, n, message->data, may_wait);
}

/* To memory of a device, as far as it is that. */
static int copy_staged(struct mrf_message *message, bool may_wait)
{
	const struct mrf_recv *recv = message->late.recv;
	struct iovec room = mrf_deliver_room(recv, message);
	struct mrf_staged all = described(recv);
	struct mrf_refusal said;
	int ret;

	if (!recv->more)
		all.iov = &room;
	mrf_refuse_catch(&said);
	ret = mrf_stage_scatter(&message->late.inbox->ep->buf, &all, 0,
				mrf_min(message->len, room.iov_len), message->data, may_wait);
	mrf_refuse_catch(NULL);
	message->late.why = ret && ret != -FI_EAGAIN ? malloc(sizeof(*message->late.why)) : NULL;
	if (message->late.why)
		mrf_why_said(message->late.why, -ret, &said, mrf_deliver_unmapped.text);
	return ret;
}

static int copy_bytes(struct mrf_message *message, bool may_wait)
{
	const struct mrf_recv *recv = message->late.recv;
	struct iovec iov = mrf_deliver_room(recv, message);

	message->late.why = NULL;
	if (may_be_device(message->late.inbox, recv))
		return copy_staged(message, may_wait);
	if (recv->more)
		return copy_more(recv, message, may_wait);
	iov.iov_len = mrf_min(message->len, iov.iov_len);
	return iov.iov_len ? mrf_user_put(&iov, 1, message->data, may_wait) : 0;
}

static bool copy_one(struct mrf_job *job)
{
	struct mrf_message *message = mrf_container_of(job, struct mrf_message, late.job);

	message->late.ret = copy_bytes(message, true);
	return false;
}

static void finish_late_locked(struct mrf_message *message)
{
	struct mrf_inbox *inbox = message->late.inbox;
	struct mrf_why *why = message->late.why;

	inbox->copying--;
	finish_recv_locked(inbox, message->late.recv, message, why_of(message->late.ret, why));
	free(why);
	mrf_inbox_tell_locked(inbox);
}

static void copied_one(struct mrf_job *job)
{
	struct mrf_message *message = mrf_container_of(job, struct mrf_message, late.job);
	struct mrf_ep *ep = message->late.inbox->ep;

	mrf_lock_take(&ep->lock);
	finish_late_locked(message);
	mrf_lock_release(&ep->lock);
}

/* False: a job is at it now. */
static bool copy_or_hand_over(struct mrf_agent *agent, struct mrf_message *message)
{
	struct mrf_job *job = &message->late.job;
	int ret = copy_bytes(message, false);

	if (ret == -FI_EAGAIN) {
		*job = (struct mrf_job){ .work = copy_one, .over = copied_one };
		mrf_list_init(&job->node);
		if (!mrf_agent_job(agent, MRF_CREW_MEMORY, job))
			return false;
		/* There is no thread for it. */
		ret = copy_bytes(message, true);
	}
	message->late.ret = ret;
	return true;
}

/* False: there is none. */
static bool copy_first_locked(struct mrf_inbox *inbox)
{
	struct mrf_list *node = mrf_list_pop(&inbox->late);
	struct mrf_message *message;
	bool done;

	if (!node)
		return false;
	message = mrf_list_entry(node, struct mrf_message, late.node);
	inbox->copying++;
	mrf_lock_release(&inbox->ep->lock);
	done = copy_or_hand_over(inbox->ep->agent, message);
	mrf_lock_take(&inbox->ep->lock);
	if (done)
		finish_late_locked(message);
	return true;
}

static void copy_all_locked(struct mrf_inbox *inbox)
{
	while (copy_first_locked(inbox))
		;
}

/* --- by a job of the agent's ----------------------------------------------------------- */

static bool copy_late(struct mrf_job *job)
{
	struct mrf_inbox *inbox = mrf_container_of(job, struct mrf_inbox, job);

	mrf_lock_take(&inbox->ep->lock);
	copy_all_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
	return false;
}

static void copied_late(struct mrf_job *job)
{
	struct mrf_inbox *inbox = mrf_container_of(job, struct mrf_inbox, job);

	mrf_lock_take(&inbox->ep->lock);
	inbox->copied = false;
	inbox->copying--;
	mrf_deliver_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
}

/* False: there is no thread for it. */
static bool hand_over_locked(struct mrf_inbox *inbox)
{
	int ret;

	inbox->job = (struct mrf_job){ .work = copy_late, .over = copied_late };
	mrf_list_init(&inbox->job.node);
	inbox->copying++;
	mrf_lock_release(&inbox->ep->lock);
	ret = mrf_agent_job(inbox->ep->agent, MRF_CREW_MEMORY, &inbox->job);
	mrf_lock_take(&inbox->ep->lock);
	if (ret)
		inbox->copying--;
	return !ret;
}

void mrf_deliver_late_locked(struct mrf_inbox *inbox)
{
	mrf_lock_held(&inbox->ep->lock);
	if (inbox->copied || mrf_list_empty(&inbox->late))
		return;
	inbox->copied = true;
	if (pthread_equal(pthread_self(), inbox->ep->agent->thread) && hand_over_locked(inbox))
		return;
	copy_all_locked(inbox);
	inbox->copied = false;
}

/* --- nobody works with it any more ------------------------------------------------------ */

void mrf_deliver_free_recv(struct mrf_recv *recv)
{
	free(recv->more);
	free(recv->multi);
	free(recv);
}

/* What is in a slot goes with the slots. */
void mrf_deliver_free_unreceived(struct mrf_message *message)
{
	if (message->offer.is)
		mrf_list_del(&message->offer.node);
	if (!message->slot)
		free(message);
}

void mrf_deliver_drop_reached(struct mrf_message *message)
{
	struct mrf_recv *recv = message->late.recv;

	if (!recv->multi || mrf_multi_give(recv))
		mrf_deliver_free_recv(recv);
	mrf_deliver_free_unreceived(message);
}

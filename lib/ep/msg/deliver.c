/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/compiler.h"
#include "base/known.h"
#include "base/log.h"
#include "base/user.h"
#include "contract/limits.h"
#include "ep/model/ep.h"
#include "ep/msg/deliver.h"
#include "ep/msg/grant.h"
#include "ep/msg/multi.h"
#include "mr/desc.h"

/* --- what the application hears ------------------------------------------------------- */

/* Its buffer is the application's again from now on, which has to be told in any case. */
static bool is_released(const struct mrf_recv *recv)
{
	return recv->multi && recv->multi->over && !recv->multi->canceled;
}

static uint64_t comp_flags(const struct mrf_recv *recv)
{
	return (recv->tagged ? FI_TAGGED : FI_MSG) | FI_RECV | (recv->claims ? FI_CLAIM : 0) |
	       (is_released(recv) ? FI_MULTI_RECV : 0);
}

struct iovec mrf_deliver_room(const struct mrf_recv *recv, const struct mrf_message *message)
{
	if (mrf_unlikely(recv->multi != NULL))
		return message->late.part;
	return (struct iovec){ recv->buf, recv->len };
}

static void *told_place(const struct mrf_recv *recv, const struct mrf_message *message)
{
	return mrf_unlikely(recv->multi != NULL) ? message->late.part.iov_base : NULL;
}

fi_addr_t mrf_deliver_source(const struct mrf_ep *ep, const struct mrf_message *message)
{
	uint64_t source = message->origin->source;

	return ep->caps & FI_SOURCE && source != MRF_MATCH_UNKNOWN ? source : FI_ADDR_NOTAVAIL;
}

static void report_ok_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			     const struct mrf_message *message)
{
	struct mrf_comp comp = { .op_context = recv->context,
				 .flags = comp_flags(recv),
				 .len = message->len,
				 .buf = told_place(recv, message),
				 .tag = message->tag,
				 .src_addr = mrf_deliver_source(ep, message) };

	if (message->has_cq_data) {
		comp.flags |= FI_REMOTE_CQ_DATA;
		comp.data = message->cq_data;
	}
	if (ep->rx_cq && (!recv->silent || is_released(recv)))
		mrf_cq_write(ep->rx_cq, &comp);
	if (ep->rcv_cntr)
		mrf_cntr_add(ep->rcv_cntr, 1);
}

/* Also what of the message is there, and not, if it has one. */
static void fill_error(const struct mrf_ep *ep, struct mrf_comp_err *entry,
		       const struct mrf_recv *recv, const struct mrf_message *message, int err,
		       int code)
{
	*entry = (struct mrf_comp_err){ .comp = { .op_context = recv->context,
						  .flags = comp_flags(recv),
						  .src_addr = FI_ADDR_NOTAVAIL },
					.err = err,
					.prov_errno = code };
	if (!message)
		return;
	entry->comp.len = mrf_min(message->len, mrf_deliver_room(recv, message).iov_len);
	entry->comp.buf = told_place(recv, message);
	entry->olen = message->len - entry->comp.len;
	entry->comp.tag = message->tag;
	entry->comp.src_addr = mrf_deliver_source(ep, message);
	entry->comp.data = message->cq_data;
	entry->comp.flags |= message->has_cq_data ? FI_REMOTE_CQ_DATA : 0;
}

static void tell_error_entry_locked(struct mrf_ep *ep, const struct mrf_comp_err *entry)
{
	if (ep->rx_cq)
		mrf_cq_write_err(ep->rx_cq, entry);
	if (ep->rcv_cntr)
		mrf_cntr_adderr(ep->rcv_cntr, 1);
}

static void report_error_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
				const struct mrf_message *message, int err, int code,
				const char *text)
{
	struct mrf_comp_err entry;

	fill_error(ep, &entry, recv, message, err, code);
	snprintf(entry.text, sizeof(entry.text), "%s", text);
	tell_error_entry_locked(ep, &entry);
}

static void report_cut_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			      const struct mrf_message *message)
{
	char text[MRF_ERR_TEXT];

	snprintf(text, sizeof(text), "the message has %zu byte%s, and the receive room for %zu",
		 message->len, MRF_S(message->len), mrf_deliver_room(recv, message).iov_len);
	report_error_locked(ep, recv, message, FI_ETRUNC, 4320, text);
}

_Static_assert(MRF_UNKNOWN_SOURCE == 4329, "the code that is in the manual");

/* With FI_SOURCE_ERR: is its sender not in the address vector? */
static bool is_stranger(const struct mrf_ep *ep, const struct mrf_message *message)
{
	return ep->caps & FI_SOURCE_ERR && message->origin->source == MRF_MATCH_UNKNOWN;
}

/* The message is where it belongs; err_data is the address of its sender. */
static void report_stranger_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
				   const struct mrf_message *message)
{
	const union mrf_addr *addr = &message->origin->addr;
	struct mrf_comp_err entry;

	fill_error(ep, &entry, recv, message, FI_EADDRNOTAVAIL, 4329);
	entry.addr_len = mrf_addr_len(addr);
	memcpy(entry.text, addr, entry.addr_len);
	tell_error_entry_locked(ep, &entry);
}

const struct mrf_why mrf_deliver_closed = {
	FI_ECANCELED, 4321,
	"the region of the receive's buffer was closed before a message came: the message is lost"
};
const struct mrf_why mrf_deliver_unmapped = {
	FI_EFAULT, 4322,
	"the receive's buffer is not mapped, or may not be written: the message is lost"
};

/* ret: of the copy. */
static const struct mrf_why *why_of(int ret)
{
	if (mrf_likely(!ret))
		return NULL;
	return ret == -FI_ECANCELED ? &mrf_deliver_closed : &mrf_deliver_unmapped;
}

static void report_end_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			      const struct mrf_message *message, const struct mrf_why *why)
{
	if (mrf_unlikely(why != NULL))
		report_error_locked(ep, recv, NULL, why->err, why->code, why->text);
	else if (mrf_unlikely(message->len > mrf_deliver_room(recv, message).iov_len))
		report_cut_locked(ep, recv, message);
	else if (mrf_unlikely(is_stranger(ep, message)))
		report_stranger_locked(ep, recv, message);
	else
		report_ok_locked(ep, recv, message);
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

	report_end_locked(inbox->ep, recv, message, why);
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
	report_end_locked(inbox->ep, recv, message, why);
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
	report_error_locked(inbox->ep, recv, NULL, FI_ECANCELED, 4323, text);
	mrf_recv_put_locked(inbox, recv);
}

/* --- copying -------------------------------------------------------------------------- */

bool mrf_deliver_is_open(const struct mrf_inbox *inbox, const struct mrf_recv *recv)
{
	const struct mrf_mr_space *space = &inbox->ep->domain->space;
	void *const *desc = recv->more ? recv->more->desc : &recv->desc;
	size_t i, n = recv->more ? recv->more->count : recv->len != 0;

	if (!(space->mode & FI_MR_LOCAL) || !desc)
		return true;
	for (i = 0; i < n; i++) {
		if (!mrf_desc_live(space, desc[i]) && !(recv->more && !recv->more->iov[i].iov_len))
			return false;
	}
	return true;
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
	return !len || (!recv->more && mrf_known_put(room.iov_base, message->data, len));
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

static int copy_bytes(const struct mrf_recv *recv, const struct mrf_message *message, bool may_wait)
{
	struct iovec iov = mrf_deliver_room(recv, message);

	if (recv->more)
		return copy_more(recv, message, may_wait);
	iov.iov_len = mrf_min(message->len, iov.iov_len);
	return iov.iov_len ? mrf_user_put(&iov, 1, message->data, may_wait) : 0;
}

static bool copy_one(struct mrf_job *job)
{
	struct mrf_message *message = mrf_container_of(job, struct mrf_message, late.job);

	message->late.ret = copy_bytes(message->late.recv, message, true);
	return false;
}

static void finish_late_locked(struct mrf_message *message)
{
	struct mrf_inbox *inbox = message->late.inbox;

	inbox->copying--;
	finish_recv_locked(inbox, message->late.recv, message, why_of(message->late.ret));
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
	int ret = copy_bytes(message->late.recv, message, false);

	if (ret == -FI_EAGAIN) {
		*job = (struct mrf_job){ .work = copy_one, .over = copied_one };
		mrf_list_init(&job->node);
		if (!mrf_agent_job(agent, MRF_CREW_MEMORY, job))
			return false;
		/* There is no thread for it. */
		ret = copy_bytes(message->late.recv, message, true);
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

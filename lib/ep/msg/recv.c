/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "base/log.h"
#include "contract/budget.h"
#include "ep/msg/deliver.h"
#include "ep/msg/label.h"
#include "ep/msg/multi.h"
#include "ep/msg/pull_step.h"
#include "ep/msg/recv.h"

/* --- one receive ---------------------------------------------------------------------- */

/* -FI_EAGAIN: programs try again after that, and give up after -FI_ENOMEM. */
static int take_recv_locked(struct mrf_inbox *inbox, struct mrf_recv **out)
{
	struct mrf_list *node = mrf_list_pop(&inbox->free_recvs);

	if (mrf_likely(node != NULL)) {
		*out = mrf_list_entry(node, struct mrf_recv, match.all);
		return 0;
	}
	if (inbox->untagged.recvs + inbox->tagged.recvs >= MRF_RECVS)
		return -FI_EAGAIN;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -FI_EAGAIN;
}

/* What of a receive with several buffers does not fit into struct mrf_recv. */
static int keep_more(const struct mrf_recv_req *req, struct mrf_recv_more **out)
{
	size_t iovs = req->count * sizeof(*req->iov);
	size_t descs = req->desc ? req->count * sizeof(*req->desc) : 0;
	struct mrf_recv_more *more = malloc(sizeof(*more) + iovs + descs);

	if (!more)
		return -FI_EAGAIN;
	more->count = req->count;
	memcpy(more->iov, req->iov, iovs);
	more->desc = descs ? (void **)(more->iov + req->count) : NULL;
	if (descs)
		memcpy(more->desc, req->desc, descs);
	*out = more;
	return 0;
}

/* What a few receives have. */
struct rest {
	struct mrf_recv_more *more;
	struct mrf_recv_multi *multi;
};

static int keep_extras(const struct mrf_recv_req *req, struct rest *rest)
{
	*rest = (struct rest){ .more = NULL };
	if (mrf_unlikely(req->count > 1))
		return keep_more(req, &rest->more);
	if (mrf_likely(!req->multi))
		return 0;
	rest->multi = calloc(1, sizeof(*rest->multi));
	return rest->multi ? 0 : -FI_EAGAIN;
}

static void fill_recv(struct mrf_recv *recv, const struct mrf_recv_req *req,
		      const struct rest *rest)
{
	recv->context = req->context;
	recv->silent = req->silent;
	recv->tagged = req->tagged;
	recv->claims = false;
	recv->more = rest->more;
	recv->multi = rest->multi;
	recv->buf = req->count ? req->iov[0].iov_base : NULL;
	recv->desc = req->count && req->desc ? req->desc[0] : NULL;
	recv->len = mrf_iov_total(req->iov, req->count);
}

/* --- posting -------------------------------------------------------------------------- */

/* Without FI_DIRECTED_RECV the source is not looked at. */
static uint64_t source_of(const struct mrf_inbox *inbox, const struct mrf_recv_req *req)
{
	bool directed = inbox->ep->caps & FI_DIRECTED_RECV && req->from != FI_ADDR_UNSPEC;

	return directed ? req->from : MRF_MATCH_ANY;
}

struct mrf_message *mrf_recv_find_locked(struct mrf_inbox *inbox, const struct mrf_recv_req *req)
{
	struct mrf_match_msg *found;

	mrf_lock_held(&inbox->ep->lock);
	mrf_label_refresh_locked(inbox);
	found = mrf_match_find(mrf_inbox_match(inbox, req->tagged), req->tag, req->ignore,
			       source_of(inbox, req));
	return found ? mrf_container_of(found, struct mrf_message, match) : NULL;
}

void mrf_recv_claim_locked(struct mrf_inbox *inbox, struct mrf_message *message,
			   const void *context)
{
	mrf_lock_held(&inbox->ep->lock);
	mrf_match_take(mrf_inbox_match(inbox, message->tagged), &message->match);
	message->claimed = context;
	message->offer.at = MRF_OFFER_CLAIMED;
	mrf_list_add_tail(&message->late.node, &inbox->claimed);
}

struct mrf_message *mrf_recv_claimed_locked(struct mrf_inbox *inbox, const void *context)
{
	mrf_lock_held(&inbox->ep->lock);
	mrf_list_each (node, &inbox->claimed) {
		struct mrf_message *message = mrf_list_entry(node, struct mrf_message, late.node);

		if (message->claimed != context)
			continue;
		mrf_list_del(node);
		mrf_inbox_unkeep_locked(inbox, message);
		return message;
	}
	return NULL;
}

static void post_recv_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			     const struct mrf_recv_req *req)
{
	struct mrf_message *message = mrf_recv_find_locked(inbox, req);

	if (mrf_likely(!message)) {
		mrf_match_post(mrf_inbox_match(inbox, req->tagged), &recv->match, req->tag,
			       req->ignore, source_of(inbox, req));
		return;
	}
	mrf_inbox_take_kept_locked(inbox, message);
	mrf_pull_meet_locked(inbox, recv, message);
	mrf_inbox_tell_locked(inbox);
}

/*
 * Unexpected messages go there first. When it takes no more, it may be over, and is not looked at
 * any more.
 */
static void post_multi_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			      const struct mrf_recv_req *req)
{
	struct mrf_message *message;
	bool stays = true;

	while (stays && (message = mrf_recv_find_locked(inbox, req))) {
		mrf_inbox_take_kept_locked(inbox, message);
		stays = mrf_pull_meet_locked(inbox, recv, message);
	}
	if (stays) {
		mrf_match_post(mrf_inbox_match(inbox, req->tagged), &recv->match, req->tag,
			       req->ignore, source_of(inbox, req));
		mrf_multi_posted_locked(inbox, recv);
	}
	mrf_inbox_tell_locked(inbox);
}

static int post_claimed_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			       const struct mrf_recv_req *req)
{
	struct mrf_message *message = mrf_recv_claimed_locked(inbox, req->context);

	if (!message) {
		mrf_recv_put_locked(inbox, recv);
		return -FI_EINVAL;
	}
	recv->claims = true;
	mrf_pull_meet_locked(inbox, recv, message);
	mrf_inbox_tell_locked(inbox);
	return 0;
}

/* What could not be copied under the lock: the caller has released it. */
static void finish_late(struct mrf_inbox *inbox)
{
	mrf_lock_take(&inbox->ep->lock);
	mrf_pull_step_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
}

/* claimed: the message is one that was. */
static int post_either_locked(struct mrf_ep *ep, const struct mrf_recv_req *req,
			      const struct rest *rest, bool claimed)
{
	struct mrf_recv *recv;
	int ret = take_recv_locked(ep->inbox, &recv);

	if (mrf_unlikely(ret)) {
		free(rest->more);
		free(rest->multi);
		return ret;
	}
	fill_recv(recv, req, rest);
	if (mrf_unlikely(claimed))
		return post_claimed_locked(ep->inbox, recv, req);
	if (mrf_likely(!recv->multi)) {
		post_recv_locked(ep->inbox, recv, req);
		return 0;
	}
	recv->multi->min = ep->min_multi;
	post_multi_locked(ep->inbox, recv, req);
	return 0;
}

static int post(struct mrf_ep *ep, const struct mrf_recv_req *req, bool claimed)
{
	struct rest rest;
	int ret = keep_extras(req, &rest);
	bool late;

	if (mrf_unlikely(ret))
		return ret;
	mrf_lock_take(&ep->lock);
	ret = post_either_locked(ep, req, &rest, claimed);
	late = mrf_pull_step_has_late_locked(ep->inbox);
	mrf_lock_release(&ep->lock);
	if (mrf_unlikely(late))
		finish_late(ep->inbox);
	return ret;
}

int mrf_recv_post(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	return post(ep, req, false);
}

int mrf_recv_post_claimed(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	return post(ep, req, true);
}

/* --- and the rest --------------------------------------------------------------------- */

static void cancel_recv_locked(struct mrf_inbox *inbox, struct mrf_match *match,
			       struct mrf_recv *recv)
{
	if (!recv->multi)
		mrf_match_cancel(match, &recv->match);
	else if (!mrf_multi_cancel_locked(inbox, recv))
		return;
	mrf_deliver_canceled_locked(inbox, recv);
}

static int cancel_in_locked(struct mrf_ep *ep, struct mrf_match *match, const void *context)
{
	struct mrf_match_recv *at = mrf_match_first_recv(match);

	while (at && mrf_recv_of(at)->context != context)
		at = mrf_match_next_recv(match, at);
	if (!at)
		return -FI_ENOENT;
	cancel_recv_locked(ep->inbox, match, mrf_recv_of(at));
	return 0;
}

int mrf_recv_cancel_locked(struct mrf_ep *ep, const void *context)
{
	int ret = cancel_in_locked(ep, &ep->inbox->untagged, context);

	mrf_lock_held(&ep->lock);
	return ret == -FI_ENOENT ? cancel_in_locked(ep, &ep->inbox->tagged, context) : ret;
}

size_t mrf_recv_posted_locked(const struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	return ep->inbox->untagged.recvs + ep->inbox->tagged.recvs;
}

static void drop_posted(struct mrf_match *match)
{
	struct mrf_match_recv *at;

	while ((at = mrf_match_first_recv(match))) {
		struct mrf_recv *recv = mrf_recv_of(at);

		mrf_match_cancel(match, at);
		if (recv->multi && recv->multi->under_way)
			recv->multi->left = true;
		else
			mrf_deliver_free_recv(recv);
	}
}

static void drop_recvs(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	drop_posted(&inbox->untagged);
	drop_posted(&inbox->tagged);
	while ((node = mrf_list_pop(&inbox->free_recvs)))
		mrf_deliver_free_recv(mrf_list_entry(node, struct mrf_recv, match.all));
}

static void drop_kept(struct mrf_match *match)
{
	struct mrf_match_msg *at;

	while ((at = mrf_match_first_msg(match))) {
		mrf_match_take(match, at);
		mrf_deliver_free_unreceived(mrf_container_of(at, struct mrf_message, match));
	}
}

void mrf_recv_drop_all(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	drop_recvs(inbox);
	mrf_pull_drop_all(inbox);
	drop_kept(&inbox->untagged);
	drop_kept(&inbox->tagged);
	while ((node = mrf_list_pop(&inbox->claimed)))
		mrf_deliver_free_unreceived(mrf_list_entry(node, struct mrf_message, late.node));
	while ((node = mrf_list_pop(&inbox->late)))
		mrf_deliver_drop_reached(mrf_list_entry(node, struct mrf_message, late.node));
}

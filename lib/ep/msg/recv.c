/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "base/log.h"
#include "contract/budget.h"
#include "ep/msg/deliver.h"
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
	if (inbox->match.recvs >= MRF_RECVS)
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

static void fill_recv(struct mrf_recv *recv, const struct mrf_recv_req *req,
		      struct mrf_recv_more *more)
{
	recv->context = req->context;
	recv->silent = req->silent;
	recv->more = more;
	recv->buf = req->count ? req->iov[0].iov_base : NULL;
	recv->desc = req->count && req->desc ? req->desc[0] : NULL;
	recv->len = mrf_iov_total(req->iov, req->count);
}

/* --- posting -------------------------------------------------------------------------- */

/* The oldest message that waits for a receive like this. */
static struct mrf_message *find_kept_locked(struct mrf_inbox *inbox)
{
	struct mrf_match_msg *match = mrf_match_find(&inbox->match, 0, 0, MRF_MATCH_ANY);
	struct mrf_message *message;

	if (mrf_likely(!match))
		return NULL;
	message = mrf_container_of(match, struct mrf_message, match);
	mrf_match_take(&inbox->match, match);
	inbox->kept -= sizeof(*message) + message->len;
	return message;
}

static void post_recv_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	struct mrf_message *message = find_kept_locked(inbox);

	if (mrf_likely(!message)) {
		mrf_match_post(&inbox->match, &recv->match, 0, 0, MRF_MATCH_ANY);
		return;
	}
	mrf_deliver_locked(inbox, recv, message);
	mrf_inbox_tell_locked(inbox);
}

/* What could not be copied under the lock: the caller has released it. */
static void finish_late(struct mrf_inbox *inbox)
{
	mrf_lock_take(&inbox->ep->lock);
	mrf_deliver_late_locked(inbox);
	mrf_lock_release(&inbox->ep->lock);
}

int mrf_recv_post(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	struct mrf_inbox *inbox = ep->inbox;
	struct mrf_recv_more *more = NULL;
	struct mrf_recv *recv;
	bool late = false;
	int ret = req->count > 1 ? keep_more(req, &more) : 0;

	if (mrf_unlikely(ret))
		return ret;
	mrf_lock_take(&ep->lock);
	ret = take_recv_locked(inbox, &recv);
	if (mrf_likely(!ret)) {
		fill_recv(recv, req, more);
		post_recv_locked(inbox, recv);
		late = mrf_deliver_has_late_locked(inbox);
	}
	mrf_lock_release(&ep->lock);
	if (mrf_unlikely(ret))
		free(more);
	if (mrf_unlikely(late))
		finish_late(inbox);
	return ret;
}

/* --- and the rest --------------------------------------------------------------------- */

int mrf_recv_cancel_locked(struct mrf_ep *ep, const void *context)
{
	struct mrf_match *match = &ep->inbox->match;
	struct mrf_match_recv *at = mrf_match_first_recv(match);

	mrf_lock_held(&ep->lock);
	while (at && mrf_recv_of(at)->context != context)
		at = mrf_match_next_recv(match, at);
	if (!at)
		return -FI_ENOENT;
	mrf_match_cancel(match, at);
	mrf_deliver_error_locked(ep->inbox, mrf_recv_of(at), FI_ECANCELED, 4323,
				 "canceled by fi_cancel: no message had come for it");
	return 0;
}

size_t mrf_recv_posted_locked(const struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	return ep->inbox->match.recvs;
}

static void free_recv(struct mrf_recv *recv)
{
	free(recv->more);
	free(recv);
}

static void drop_recvs(struct mrf_inbox *inbox)
{
	struct mrf_match_recv *at;
	struct mrf_list *node;

	while ((at = mrf_match_first_recv(&inbox->match))) {
		mrf_match_cancel(&inbox->match, at);
		free_recv(mrf_recv_of(at));
	}
	while ((node = mrf_list_pop(&inbox->free_recvs)))
		free_recv(mrf_list_entry(node, struct mrf_recv, match.all));
}

/* What is in a slot goes with the slots. */
static void free_message(struct mrf_message *message)
{
	if (!message->slot)
		free(message);
}

void mrf_recv_drop_all(struct mrf_inbox *inbox)
{
	struct mrf_match_msg *at;
	struct mrf_list *node;

	drop_recvs(inbox);
	while ((at = mrf_match_first_msg(&inbox->match))) {
		mrf_match_take(&inbox->match, at);
		free_message(mrf_container_of(at, struct mrf_message, match));
	}
	while ((node = mrf_list_pop(&inbox->late))) {
		struct mrf_message *message = mrf_list_entry(node, struct mrf_message, late.node);

		free_recv(message->late.recv);
		free_message(message);
	}
}

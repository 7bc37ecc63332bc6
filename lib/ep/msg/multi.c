/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/ep.h"
#include "ep/msg/multi.h"

struct mrf_match_recv *mrf_multi_arrive_locked(struct mrf_inbox *inbox, struct mrf_match *match,
					       uint64_t source, uint64_t tag)
{
	struct mrf_match_recv *recv = mrf_match_meet(match, source, tag);

	mrf_lock_held(&inbox->ep->lock);
	if (recv && !mrf_recv_of(recv)->multi)
		mrf_match_cancel(match, recv);
	return recv;
}

static size_t left_of(const struct mrf_recv *recv)
{
	return recv->len - recv->multi->used;
}

/* It has no use for nothing, even if the application wants to be given the last byte. */
static bool is_enough(const struct mrf_recv *recv, size_t left)
{
	return left && left >= recv->multi->min;
}

static bool stays_after(const struct mrf_recv *recv, size_t len)
{
	size_t left = left_of(recv);

	return is_enough(recv, left - mrf_min(len, left));
}

void mrf_multi_posted_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	mrf_lock_held(&inbox->ep->lock);
	recv->multi->posted = true;
	inbox->multis++;
}

void mrf_multi_leave_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	struct mrf_recv_multi *multi = recv->multi;

	mrf_lock_held(&inbox->ep->lock);
	multi->left = true;
	if (!multi->posted)
		return;
	multi->posted = false;
	inbox->multis--;
	mrf_match_cancel(mrf_inbox_match(inbox, recv->tagged), &recv->match);
}

bool mrf_multi_take_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			   struct mrf_message *message)
{
	struct mrf_recv_multi *multi = recv->multi;
	bool stays = stays_after(recv, message->len);

	mrf_lock_held(&inbox->ep->lock);
	message->late.part = (struct iovec){ (uint8_t *)recv->buf + multi->used, left_of(recv) };
	multi->used += mrf_min(message->len, left_of(recv));
	multi->under_way++;
	if (!stays)
		mrf_multi_leave_locked(inbox, recv);
	return stays;
}

bool mrf_multi_give(struct mrf_recv *recv)
{
	struct mrf_recv_multi *multi = recv->multi;

	multi->under_way--;
	multi->over = multi->left && !multi->under_way;
	return multi->over;
}

bool mrf_multi_cancel_locked(struct mrf_inbox *inbox, struct mrf_recv *recv)
{
	struct mrf_recv_multi *multi = recv->multi;

	mrf_multi_leave_locked(inbox, recv);
	multi->over = !multi->under_way;
	multi->canceled = multi->under_way;
	return multi->over;
}

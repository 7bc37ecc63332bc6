/* SPDX-License-Identifier: BSD-2-Clause */
#include "match/match.h"

void mrf_match_init(struct mrf_match *match)
{
	mrf_list_init(&match->posted);
	mrf_list_init(&match->unexpected);
}

static bool accepts(const struct mrf_match_want *want, const struct mrf_match_message *message)
{
	return (want->tag | want->ignore) == (message->tag | want->ignore) &&
	       (want->source == FI_ADDR_UNSPEC || want->source == message->source);
}

struct mrf_match_recv *mrf_match_arrive(struct mrf_match *match, struct mrf_match_message *message)
{
	mrf_list_each (node, &match->posted) {
		struct mrf_match_recv *recv = mrf_list_entry(node, struct mrf_match_recv, node);

		if (!accepts(&recv->want, message))
			continue;
		if (!recv->multi)
			mrf_match_withdraw(recv);
		return recv;
	}
	mrf_list_add_tail(&message->node, &match->unexpected);
	return NULL;
}

struct mrf_match_message *mrf_match_post(struct mrf_match *match, struct mrf_match_recv *recv)
{
	struct mrf_match_message *message = mrf_match_peek(match, &recv->want);

	if (message)
		mrf_match_take(message);
	else
		mrf_list_add_tail(&recv->node, &match->posted);
	return message;
}

struct mrf_match_message *mrf_match_peek(const struct mrf_match *match,
					 const struct mrf_match_want *want)
{
	mrf_list_each (node, &match->unexpected) {
		struct mrf_match_message *message =
			mrf_list_entry(node, struct mrf_match_message, node);

		if (accepts(want, message))
			return message;
	}
	return NULL;
}

void mrf_match_take(struct mrf_match_message *message)
{
	mrf_list_del(&message->node);
}

void mrf_match_withdraw(struct mrf_match_recv *recv)
{
	mrf_list_del(&recv->node);
}

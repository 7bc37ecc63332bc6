/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "ep/model/ep.h"
#include "ep/msg/pull.h"
#include "ep/msg/label.h"
#include "ep/msg/multi.h"
#include "obj/av_index.h"

static bool uses_labels(const struct mrf_inbox *inbox)
{
	return inbox->ep->caps & (FI_DIRECTED_RECV | FI_SOURCE);
}

static uint64_t label_of_locked(const struct mrf_inbox *inbox, const struct mrf_origin *origin)
{
	fi_addr_t addr = mrf_av_find(inbox->ep->av, &origin->addr);

	return addr == FI_ADDR_NOTAVAIL ? MRF_MATCH_UNKNOWN : addr;
}

void mrf_label_new_locked(struct mrf_inbox *inbox, struct mrf_origin *origin)
{
	mrf_lock_held(&inbox->ep->lock);
	origin->source = uses_labels(inbox) ? label_of_locked(inbox, origin) : MRF_MATCH_UNKNOWN;
}

/* A receive may have waited for a message of that sender. */
static void meet_locked(struct mrf_inbox *inbox, struct mrf_match *match,
			struct mrf_message *message)
{
	struct mrf_match_recv *recv =
		mrf_recv_arrive_locked(inbox, match, message->match.item.source, message->tag);

	if (!recv)
		return;
	mrf_inbox_unkeep_locked(inbox, message);
	mrf_match_take(match, &message->match);
	mrf_pull_meet_locked(inbox, mrf_recv_of(recv), message);
}

/* The oldest goes first. */
static void move_kept_locked(struct mrf_inbox *inbox, struct mrf_match *match,
			     const struct mrf_origin *origin)
{
	struct mrf_match_msg *at = mrf_match_first_msg(match), *next;

	for (; at; at = next) {
		struct mrf_message *message = mrf_container_of(at, struct mrf_message, match);

		next = mrf_match_next_msg(match, at);
		if (message->origin != origin)
			continue;
		mrf_match_relabel(match, at, origin->source);
		meet_locked(inbox, match, message);
	}
}

static void look_again_locked(struct mrf_inbox *inbox)
{
	mrf_list_each (node, &inbox->origins) {
		struct mrf_origin *origin = mrf_list_entry(node, struct mrf_origin, node);
		uint64_t source = label_of_locked(inbox, origin);

		if (source == origin->source)
			continue;
		origin->source = source;
		if (!origin->kept)
			continue;
		move_kept_locked(inbox, &inbox->untagged, origin);
		move_kept_locked(inbox, &inbox->tagged, origin);
	}
}

void mrf_label_refresh_locked(struct mrf_inbox *inbox)
{
	uint64_t changes;

	mrf_lock_held(&inbox->ep->lock);
	if (mrf_likely(!uses_labels(inbox)))
		return;
	changes = mrf_av_changes(inbox->ep->av);
	if (mrf_likely(changes == inbox->labelled))
		return;
	inbox->labelled = changes;
	look_again_locked(inbox);
}

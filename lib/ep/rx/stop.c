/* SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>
#include "base/clock.h"
#include "contract/budget.h"
#include "ep/rx/ends.h"
#include "ep/rx/stop.h"
#include "verbs/vqp.h"

enum flush { PASSIVE_GONE, FLUSHED, NOT_FLUSHED };

/* Is there a receive that has come back, or that will? If none is posted, one is: nothing comes in it. */
static bool flushes(struct mrf_passive *passive)
{
	return passive->flushed || passive->receiving || !mrf_passive_post_slot(passive, 0);
}

/*
 * The queue pair is in error. Its kernel takes no further packet, but may be carrying one out, on the
 * processor of the thread that has posted it: soft-RoCE sends to its own host by a call. It gives the
 * receives back when it is done with that. comes: it does, for the device has put the queue pair into error.
 */
static enum flush await_flush(struct mrf_passive *passive, bool comes)
{
	struct mrf_agent *agent = passive->ep->agent;
	uint64_t id = passive->owner.id;
	int64_t end = mrf_now_ms() + MRF_FLUSH_MS;

	for (mrf_agent_poll(agent); mrf_idmap_find(&agent->owners, id); mrf_agent_poll(agent)) {
		if (passive->flushed)
			return FLUSHED;
		if (!comes || !flushes(passive) || mrf_now_ms() >= end)
			return NOT_FLUSHED;
		usleep(50);
	}
	return PASSIVE_GONE;
}

bool mrf_passive_stop(struct mrf_passive *passive)
{
	struct mrf_end end = { .ticket = passive->ticket,
			       .addr = passive->addr,
			       .qpn = mrf_vconn_qpn(passive->vconn) };

	switch (await_flush(passive, !mrf_vconn_disconnect(passive->vconn))) {
	case PASSIVE_GONE:
		return false;
	case FLUSHED:
		if (!mrf_vconn_stopped(passive->vconn, &end.psn))
			mrf_ends_keep(&passive->ep->ends, &end);
		break;
	case NOT_FLUSHED:
		break;
	}
	return true;
}

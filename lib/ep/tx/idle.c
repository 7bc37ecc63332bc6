/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"
#include "base/compiler.h"
#include "contract/budget.h"
#include "ep/link/bulk.h"
#include "ep/link/conn.h"
#include "ep/tx/idle.h"

#define LOOK_MS (MRF_IDLE_MS / 4)

/* Nothing is under way on it, or waits for the target. */
static bool is_quiet_locked(const struct mrf_peer *peer)
{
	const struct mrf_conn *conn = peer->conn;

	return mrf_list_empty(&peer->queue) && mrf_list_empty(&peer->undelivered) &&
	       mrf_list_empty(&peer->offered) && !peer->line.asks && !peer->lifted &&
	       !peer->chores.unprepared && !mrf_conn_in_flight_locked(conn) &&
	       !(conn->bulk && mrf_bulk_in_flight(conn->bulk));
}

static bool is_used_locked(struct mrf_peer *peer, int64_t now)
{
	struct mrf_outlet *line = &peer->line;

	if (is_quiet_locked(peer) && line->seen == line->posted)
		return false;
	line->seen = line->posted;
	line->since = now;
	return true;
}

static bool has_line(const struct mrf_peer *peer)
{
	return peer->kind == MRF_CONN_LINE && peer->state == MRF_PEER_READY;
}

/* The line that has been idle longest, if there are too many; *n: how many there are. */
static struct mrf_peer *longest_idle_locked(struct mrf_ep *ep, int64_t now, unsigned *n)
{
	struct mrf_peer *found = NULL;

	*n = 0;
	mrf_list_each (node, &ep->all_peers) {
		struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, node);

		if (!has_line(peer))
			continue;
		++*n;
		if (!is_used_locked(peer, now) && (!found || peer->line.since < found->line.since))
			found = peer;
	}
	return *n > MRF_LINES_KEPT ? found : NULL;
}

int64_t mrf_idle_look_locked(struct mrf_ep *ep, int64_t now)
{
	struct mrf_peer *peer;
	unsigned n;

	mrf_lock_held(&ep->lock);
	peer = longest_idle_locked(ep, now, &n);
	if (n <= MRF_LINES_KEPT)
		return -1;
	if (!peer || now - peer->line.since < MRF_IDLE_MS)
		return LOOK_MS;
	/* One in a turn, because the kernel takes its time to close one. It was not lost. */
	peer->dial.losses = 0;
	mrf_conn_break_locked(peer);
	return 1;
}

static void look_at_idle(struct mrf_timer *timer)
{
	struct mrf_ep *ep = mrf_container_of(timer, struct mrf_ep, idle);
	int64_t next;

	mrf_lock_take(&ep->lock);
	next = mrf_idle_look_locked(ep, mrf_now_ms());
	mrf_lock_release(&ep->lock);
	if (next >= 0)
		mrf_timer_set(ep->agent, timer, next);
}

void mrf_idle_init(struct mrf_ep *ep)
{
	ep->idle.over = look_at_idle;
}

void mrf_idle_begins_locked(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;

	mrf_lock_held(&ep->lock);
	peer->line.seen = peer->line.posted;
	peer->line.since = mrf_now_ms();
	if (ep->tickets.count > MRF_LINES_KEPT && !mrf_timer_runs(&ep->idle))
		mrf_timer_set(ep->agent, &ep->idle, LOOK_MS);
}

void mrf_idle_end(struct mrf_ep *ep)
{
	mrf_timer_stop(ep->agent, &ep->idle);
}

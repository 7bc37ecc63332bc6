/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "buf/cache.h"
#include "contract/budget.h"
#include "ep/eps.h"
#include "ep/link/conn.h"
#include "ep/msg/duty.h"
#include "ep/msg/lost.h"
#include "ep/msg/farewell.h"
#include "ep/msg/orphans.h"
#include "ep/rx/atomic_serve.h"
#include "ep/rx/requests.h"
#include "ep/rx/target.h"
#include "ep/rx/target_serve.h"
#include "ep/tx/chores.h"
#include "ep/tx/idle.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/peers.h"
#include "ep/tx/service.h"
#include "loop/agent_calls.h"
#include "monitor/monitor.h"

/* --- what the agent does for endpoints ------------------------------------------------------- */

/* An endpoint that has to wait again has its turn the next time. */
static void advance_watching_locked(struct mrf_ep *ep)
{
	struct mrf_list *node, now;

	mrf_lock_held(&ep->lock);
	mrf_list_init(&now);
	while ((node = mrf_list_pop(&ep->watching)))
		mrf_list_add_tail(node, &now);
	while ((node = mrf_list_pop(&now)))
		mrf_peer_advance_locked(mrf_list_entry(node, struct mrf_peer, watching));
}

static void cq_has_news(void *watcher)
{
	struct mrf_ep *ep = watcher;

	mrf_lock_take(&ep->lock);
	ep->watched = false;
	/* Other threads may wait for the queue, too, so it is armed again. */
	mrf_vcq_rearm(ep->scq, true);
	if (ep->lines)
		mrf_vcq_rearm(ep->lines->vcq, true);
	mrf_peer_progress_locked(ep);
	advance_watching_locked(ep);
	if (ep->lines)
		mrf_duty_rests_locked(ep->lines);
	mrf_service_leave(ep);
}

/* False: the time is over, and some may be left. */
static bool leave_removed(struct mrf_ep *ep, int64_t end)
{
	bool in_time = true;

	mrf_lock_take(&ep->lock);
	mrf_list_each_safe (node, &ep->all_peers) {
		struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, node);

		/* Endpoints that have left the list already are busy, and will be kicked. */
		if (peer->gone || !mrf_peers_let_go_locked(peer))
			continue;
		mrf_service_conn_locked(peer);
		in_time = mrf_now_us() < end;
		if (!in_time)
			break;
	}
	mrf_service_leave(ep);
	return in_time;
}

/*
 * Closes idle connections to addresses that were removed: as many as there is time for, and the
 * others in the next turns.
 */
static void removed(struct mrf_agent *agent)
{
	int64_t end = mrf_now_us() + MRF_TURN_US;

	mrf_list_each (node, &mrf_eps_of(agent)->all) {
		if (leave_removed(mrf_list_entry(node, struct mrf_ep, of_agent), end))
			continue;
		mrf_agent_removed(agent);
		return;
	}
}

static void turn_is_over(struct mrf_agent *agent)
{
	struct mrf_eps *eps = mrf_eps_of(agent);

	mrf_passive_destroy_disconnected(eps);
	mrf_passive_check(eps);
}

static const struct mrf_agent_guest guest = {
	.completed = cq_has_news,
	.removed = removed,
	.serve = mrf_target_serve,
	.over = turn_is_over,
};

/* --- endpoints come and go ------------------------------------------------------------------- */

static void listener_event(struct mrf_owner *owner, const struct mrf_cm_event *event)
{
	if (event->type == MRF_CM_REQUEST)
		mrf_passive_request(mrf_container_of(owner, struct mrf_ep, owner), event);
}

static const struct mrf_owner_calls listener_calls = { .event = listener_event };

static int ep_open(struct mrf_agent *agent, void *arg)
{
	struct mrf_ep *ep = arg;
	int ret;

	ep->owner.calls = &listener_calls;
	if (agent->denied)
		return -FI_EACCES;
	ret = mrf_vconn_open(agent->cm, &ep->owner, &ep->listener);
	if (mrf_unlikely(ret == -FI_EACCES))
		mrf_agent_denied(agent);
	if (ret)
		return ret;
	ret = mrf_vconn_bind(ep->listener, &ep->addr.sa);
	if (!ret)
		ret = mrf_agent_cq_add(agent, ep->scq, ep);
	if (ret)
		mrf_vconn_close(ep->listener);
	else
		mrf_list_add_tail(&ep->of_agent, &mrf_eps_of(agent)->all);
	return ret;
}

int mrf_eps_add(struct mrf_ep *ep)
{
	return mrf_agent_command(ep->agent, ep, ep_open);
}

struct move {
	struct mrf_ep *ep;
	union mrf_addr addr;
};

static int move_in_agent(struct mrf_agent *agent, void *arg)
{
	struct move *move = arg;
	struct mrf_ep *ep = move->ep;
	struct mrf_vconn *listener;
	int ret = mrf_vconn_open(agent->cm, &ep->owner, &listener);

	if (ret)
		return ret;
	ret = mrf_vconn_bind(listener, &move->addr.sa);
	if (ret) {
		mrf_vconn_close(listener);
		return ret;
	}
	mrf_vconn_close(ep->listener);
	ep->listener = listener;
	ep->addr = move->addr;
	return 0;
}

int mrf_eps_move(struct mrf_ep *ep, const union mrf_addr *addr)
{
	struct move move = { ep, *addr };

	return mrf_agent_command(ep->agent, &move, move_in_agent);
}

static int enable_in_agent(struct mrf_agent *agent, void *arg)
{
	struct mrf_ep *ep = arg;

	(void)agent;
	return mrf_vconn_listen(ep->listener);
}

int mrf_eps_listen(struct mrf_ep *ep)
{
	return mrf_agent_command(ep->agent, ep, enable_in_agent);
}

static int stop_in_agent(struct mrf_agent *agent, void *arg)
{
	struct mrf_ep *ep = arg;

	mrf_list_del(&ep->of_agent);
	mrf_vconn_close(ep->listener);
	mrf_agent_cq_remove(agent, ep->scq);
	return 0;
}

enum { NONE, DONE, BUSY }; /* not MRF_AGENT_LATER: BUSY */

static int abandon_one(struct mrf_ep *ep)
{
	struct mrf_list *node;
	int ret = NONE;

	mrf_lock_take(&ep->lock);
	node = mrf_list_first(&ep->all_peers);
	if (node)
		ret = mrf_service_abandon_locked(mrf_list_entry(node, struct mrf_peer, node))
			      ? DONE
			      : BUSY;
	mrf_lock_release(&ep->lock);
	return ret;
}

static int rest_in_agent(struct mrf_agent *agent, void *arg)
{
	(void)agent;
	(void)arg;
	return 0;
}

/* Closes as many connections as there is time for. */
static int close_in_agent(struct mrf_agent *agent, void *arg)
{
	int64_t end = mrf_now_us() + MRF_TURN_US;
	struct mrf_ep *ep = arg;
	int ret = NONE;

	(void)agent;
	while (mrf_passive_destroy_one(ep) || (ret = abandon_one(ep))) {
		if (ret == BUSY)
			return BUSY;
		if (mrf_now_us() >= end)
			return MRF_AGENT_LATER;
	}
	mrf_atomic_loop_close(ep);
	mrf_idle_end(ep);
	if (ep->lines) {
		mrf_duty_end(ep->lines);
		mrf_orphans_end(ep->lines);
	}
	if (ep->inbox) {
		mrf_lost_stop(ep->inbox);
		mrf_agent_unkick(ep->agent, &ep->inbox->kick);
	}
	return 0;
}

/* Is a message under way, or on the way to a line that is being made? */
static bool sends_locked(const struct mrf_peer *peer)
{
	if (peer->kind != MRF_CONN_LINE)
		return false;
	if (peer->conn && mrf_conn_in_flight_locked(peer->conn))
		return true;
	/* A target that does not take messages in is not waited for. */
	return mrf_peer_has_ops(peer) &&
	       (peer->state != MRF_PEER_READY || mrf_outlet_is_open(&peer->line));
}

static bool still_sends(struct mrf_ep *ep)
{
	bool sends = false;

	mrf_lock_take(&ep->lock);
	mrf_peer_progress_locked(ep);
	mrf_list_each (node, &ep->all_peers)
		sends |= sends_locked(mrf_list_entry(node, struct mrf_peer, node));
	mrf_chores_unlock(ep);
	return sends;
}

static bool says_farewell(struct mrf_ep *ep)
{
	bool over;

	mrf_lock_take(&ep->lock);
	over = !ep->lines || mrf_farewell_locked(ep->lines);
	mrf_chores_unlock(ep);
	return !over;
}

void mrf_eps_linger(struct mrf_ep *ep)
{
	int64_t linger = mrf_param_int(MRF_PARAM_LINGER), end = mrf_now_ms() + linger;

	while (still_sends(ep) && mrf_now_ms() < end)
		usleep(200);
	end = mrf_now_ms() + mrf_min(linger, (int64_t)MRF_FAREWELL_MS);
	while (says_farewell(ep) && mrf_now_ms() < end)
		usleep(20);
}

void mrf_eps_remove(struct mrf_ep *ep)
{
	mrf_agent_command(ep->agent, ep, stop_in_agent);
	do {
		mrf_chores_wait(ep);
	} while (mrf_agent_command(ep->agent, ep, close_in_agent) == BUSY);
	/* A message that came last may have to be copied to memory that is not there. */
	mrf_chores_run(ep);
	mrf_chores_wait(ep);
	/* The agent has ended what it does after such a copy. */
	mrf_agent_command(ep->agent, ep, rest_in_agent);
}

/* --- what they share -------------------------------------------------------------------------- */

/* Any thread, the monitor's too, with its lock held: see mrf_mr_space.dropped. */
static void pins_dropped(void *arg)
{
	mrf_agent_dropped(arg);
}

static int poll_once(struct mrf_agent *agent, void *arg)
{
	(void)arg;
	mrf_agent_poll(agent);
	return 0;
}

/* When this returns, all writes that peers made before the call are counted. */
static void settle_now(void *arg)
{
	mrf_agent_command(arg, NULL, poll_once);
}

/* On: the agent is told of dropped pins. Off: it is no longer told once this has returned. */
static void listen_for_drops(struct mrf_eps *eps, bool on)
{
	struct mrf_mr_space *space = eps->space;

	mrf_lock_take(&space->lock);
	space->settle_arg = on ? &eps->agent : NULL;
	space->settle = on ? settle_now : NULL;
	mrf_lock_release(&space->lock);

	/* The monitor calls under its lock, so the old function is not called after this. */
	mrf_monitor_lock();
	space->dropped_arg = on ? &eps->agent : NULL;
	space->dropped = on ? pins_dropped : NULL;
	mrf_monitor_unlock();
}

static int eps_new(struct mrf_domain *domain, struct mrf_eps **out)
{
	struct mrf_eps *eps = calloc(1, sizeof(*eps));
	int ret;

	if (!eps)
		return -FI_ENOMEM;
	eps->space = &domain->space;
	mrf_list_init(&eps->all);
	mrf_list_init(&eps->permits);
	mrf_list_init(&eps->half);
	mrf_list_init(&eps->disconnected);
	mrf_list_init(&eps->ready);
	mrf_list_init(&eps->works);
	mrf_list_init(&eps->orphans);
	mrf_list_init(&eps->stagings);
	eps->cache = mrf_cache_new(&domain->space);
	ret = eps->cache ? mrf_agent_start(&eps->agent, domain->vdev, &guest) : -FI_ENOMEM;
	if (ret) {
		mrf_cache_free(eps->cache);
		free(eps);
		return ret;
	}
	listen_for_drops(eps, true);
	*out = eps;
	return 0;
}

int mrf_eps_get(struct mrf_domain *domain, struct mrf_agent **agent)
{
	int ret = 0;

	mrf_lock_take(&domain->lock);
	if (!domain->eps)
		ret = eps_new(domain, &domain->eps);
	if (!ret)
		*agent = &domain->eps->agent;
	mrf_lock_release(&domain->lock);
	return ret ? mrf_refuse(mrf_thread_err(ret), FI_LOG_DOMAIN, 4001,
				"the agent's thread cannot be started: %s", mrf_limit_text(-ret))
		   : 0;
}

void mrf_eps_cache_stats(struct mrf_eps *eps, struct fi_mrfab_cache_stats *stats)
{
	mrf_cache_stats(eps->cache, stats);
}

void mrf_eps_close(struct mrf_eps *eps)
{
	listen_for_drops(eps, false);
	mrf_agent_stop(&eps->agent);
	mrf_requests_fini(eps);
	mrf_cache_free(eps->cache);
	free(eps);
}

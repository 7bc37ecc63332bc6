/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "base/log.h"
#include "base/thread.h"
#include "buf/cache.h"
#include "ep/eps.h"
#include "ep/life.h"
#include "ep/rx/requests.h"
#include "loop/agent_calls.h"
#include "monitor/monitor.h"

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

/* on: the agent is told of dropped pins. Off: it is not, once this has returned. */
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
	mrf_list_init(&eps->turns);
	mrf_list_init(&eps->half);
	mrf_list_init(&eps->disconnected);
	mrf_list_init(&eps->ready);
	mrf_list_init(&eps->works);
	mrf_list_init(&eps->orphans);
	mrf_list_init(&eps->rings);
	eps->cache = mrf_cache_new(&domain->space);
	ret = eps->cache ? mrf_agent_start(&eps->agent, domain->vdev, &mrf_life_guest) : -FI_ENOMEM;
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

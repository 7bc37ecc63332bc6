/* SPDX-License-Identifier: BSD-2-Clause */
/* What other threads want of the agent: kicks, commands, and word of pins that are gone. */
#include <errno.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/log.h"
#include "ep/agent_int.h"
#include "ep/atomic.h"
#include "ep/budget.h"
#include "ep/denied.h"
#include "ep/service.h"
#include "monitor/monitor.h"

struct mrf_command {
	struct mrf_list node;
	int (*run)(struct mrf_agent *agent, struct mrf_ep *ep);
	struct mrf_ep *ep;
	int ret;
	sem_t done;
};

/* --- what other threads want ------------------------------------------------------------- */

static struct mrf_peer *next_kick(struct mrf_agent *agent)
{
	struct mrf_list *node;

	mrf_lock_take(&agent->lock);
	node = mrf_list_pop(&agent->kicks);
	mrf_lock_release(&agent->lock);
	return node ? mrf_list_entry(node, struct mrf_peer, kick) : NULL;
}

void mrf_agent_run_kicks(struct mrf_agent *agent)
{
	struct mrf_peer *peer;
	int i;

	/* Peers are freed by this thread only, so the pointer stays good without the lock. */
	for (i = 0; i < MRF_TURN_KICKS && (peer = next_kick(agent)); i++) {
		struct mrf_ep *ep = peer->ep;

		mrf_lock_take(&ep->lock);
		mrf_conn_service(peer);
		mrf_lock_release(&ep->lock);
	}
	agent->more |= i == MRF_TURN_KICKS;
}

void mrf_agent_run_commands(struct mrf_agent *agent)
{
	struct mrf_list *node;

	mrf_lock_take(&agent->lock);
	atomic_store(&agent->commanded, false);
	while ((node = mrf_list_pop(&agent->commands))) {
		struct mrf_command *command = mrf_list_entry(node, struct mrf_command, node);

		mrf_lock_release(&agent->lock);
		command->ret = command->run(agent, command->ep);
		sem_post(&command->done);
		mrf_lock_take(&agent->lock);
	}
	mrf_lock_release(&agent->lock);
}

void mrf_agent_wake(struct mrf_agent *agent)
{
	uint64_t one = 1;
	ssize_t n = write(agent->event_fd, &one, sizeof(one));

	(void)n; /* full is as good: it is readable */
}

void mrf_agent_kick(struct mrf_peer *peer)
{
	struct mrf_agent *agent = peer->ep->agent;
	bool first;

	mrf_lock_take(&agent->lock);
	first = mrf_list_empty(&peer->kick);
	if (first)
		mrf_list_add_tail(&peer->kick, &agent->kicks);
	mrf_lock_release(&agent->lock);
	if (first)
		mrf_agent_wake(agent);
}

void mrf_agent_unkick(struct mrf_peer *peer)
{
	struct mrf_agent *agent = peer->ep->agent;

	mrf_lock_take(&agent->lock);
	mrf_list_del(&peer->kick);
	mrf_lock_release(&agent->lock);
}

void mrf_agent_watch(struct mrf_peer *peer)
{
	struct mrf_ep *ep = peer->ep;
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = ep };

	if (ep->watched)
		return;
	ep->watched = true;
	mrf_vcq_arm(ep->scq);
	epoll_ctl(ep->agent->epoll_fd, EPOLL_CTL_MOD, mrf_vcq_fd(ep->scq), &event);
	/* What completed before makes no event: the agent polls once to see. */
	mrf_agent_kick(peer);
}

static int command(struct mrf_agent *agent, struct mrf_ep *ep,
		   int (*run)(struct mrf_agent *, struct mrf_ep *))
{
	struct mrf_command command = { .run = run, .ep = ep };

	sem_init(&command.done, 0, 0);
	mrf_lock_take(&agent->lock);
	mrf_list_add_tail(&command.node, &agent->commands);
	atomic_store(&agent->commanded, true);
	mrf_agent_wake(agent);
	mrf_lock_release(&agent->lock);
	while (sem_wait(&command.done))
		; /* interrupted by a signal handler of the application */
	sem_destroy(&command.done);
	return command.ret;
}

/* --- regions that change, or go --------------------------------------------------- */

/* Any thread, the monitor's too, with its lock held: see mrf_mr_space.dropped. */
static void pins_dropped(void *arg)
{
	struct mrf_agent *agent = arg;

	if (!atomic_exchange(&agent->dropped, true))
		mrf_agent_wake(agent);
}

static int settle(struct mrf_agent *agent, struct mrf_ep *ep)
{
	(void)ep;
	mrf_agent_poll(agent);
	return 0;
}

/* What peers wrote before this was called is counted when it returns. */
static void settle_now(void *arg)
{
	command(arg, NULL, settle);
}

/* The monitor calls under its lock, so that nobody is called once this has returned. */
void mrf_agent_listen(struct mrf_agent *agent, bool on)
{
	struct mrf_mr_space *space = &agent->domain->space;

	mrf_lock_take(&space->lock);
	space->settle_arg = on ? agent : NULL;
	space->settle = on ? settle_now : NULL;
	mrf_lock_release(&space->lock);

	mrf_monitor_lock();
	space->dropped_arg = on ? agent : NULL;
	space->dropped = on ? pins_dropped : NULL;
	mrf_monitor_unlock();
}

static void forget_one(void *value, void *arg)
{
	struct mrf_owner *owner = value;

	(void)arg;
	if (owner->kind == MRF_OWNER_PASV)
		mrf_pasv_forget(mrf_pasv_of(owner));
}

void mrf_agent_tell_peers(struct mrf_agent *agent)
{
	if (mrf_likely(!atomic_exchange(&agent->dropped, false)))
		return;
	mrf_info(FI_LOG_MR, "pins were dropped, because memory changed or room was needed: peers are told "
			    "to ask again");
	mrf_idmap_each(&agent->owners, forget_one, NULL);
}

/* --- addresses that are removed --------------------------------------------------- */

void mrf_agent_av_removed(struct mrf_av_watch *watch)
{
	struct mrf_ep *ep = mrf_container_of(watch, struct mrf_ep, av_watch);

	if (!atomic_exchange(&ep->agent->removed, true))
		mrf_agent_wake(ep->agent);
}

static void let_go(struct mrf_ep *ep)
{
	mrf_lock_take(&ep->lock);
	mrf_list_each_safe(node, &ep->all_peers) {
		struct mrf_peer *peer = mrf_list_entry(node, struct mrf_peer, node);

		if (mrf_peer_let_go(peer))
			mrf_conn_service(peer);
	}
	mrf_lock_release(&ep->lock);
}

void mrf_agent_let_go(struct mrf_agent *agent)
{
	if (mrf_likely(!atomic_exchange(&agent->removed, false)))
		return;
	mrf_list_each(node, &agent->eps)
		let_go(mrf_list_entry(node, struct mrf_ep, of_agent));
}

/* --- endpoints come and go ----------------------------------------------------------------- */

static int ep_open(struct mrf_agent *agent, struct mrf_ep *ep)
{
	struct epoll_event event = { .events = EPOLLONESHOT, .data.ptr = ep };
	int ret;

	ep->owner.kind = MRF_OWNER_EP;
	if (agent->denied)
		return -FI_EACCES;
	ret = mrf_vconn_open(agent->cm, &ep->owner, &ep->listener);
	if (mrf_unlikely(ret == -FI_EACCES))
		mrf_agent_denied(agent);
	if (ret)
		return ret;
	ret = mrf_vconn_bind(ep->listener, &ep->addr.sa);
	if (!ret && epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, mrf_vcq_fd(ep->scq), &event))
		ret = -errno;
	if (ret)
		mrf_vconn_close(ep->listener);
	else
		mrf_list_add_tail(&ep->of_agent, &agent->eps);
	return ret;
}

int mrf_agent_ep_open(struct mrf_agent *agent, struct mrf_ep *ep)
{
	return command(agent, ep, ep_open);
}

static int ep_enable(struct mrf_agent *agent, struct mrf_ep *ep)
{
	(void)agent;
	return mrf_vconn_listen(ep->listener);
}

int mrf_agent_ep_enable(struct mrf_agent *agent, struct mrf_ep *ep)
{
	return command(agent, ep, ep_enable);
}

static int ep_close(struct mrf_agent *agent, struct mrf_ep *ep)
{
	mrf_list_del(&ep->of_agent);
	mrf_vconn_close(ep->listener);
	mrf_pasv_destroy_all(ep);
	mrf_atomic_loop_close(ep);
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, mrf_vcq_fd(ep->scq), NULL);
	mrf_lock_take(&ep->lock);
	mrf_list_each_safe(node, &ep->all_peers)
		mrf_peer_abandon(mrf_list_entry(node, struct mrf_peer, node));
	mrf_lock_release(&ep->lock);
	return 0;
}

void mrf_agent_ep_close(struct mrf_agent *agent, struct mrf_ep *ep)
{
	command(agent, ep, ep_close);
}

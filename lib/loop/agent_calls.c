/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "contract/budget.h"
#include "loop/agent_calls.h"
#include "verbs/vcq.h"

struct mrf_command {
	struct mrf_list node;
	int (*run)(struct mrf_agent *agent, void *arg);
	void *arg;
	int ret;
	sem_t done;
};

/* --- what other threads want ------------------------------------------------------------- */

static struct mrf_kick *next_kick(struct mrf_agent *agent)
{
	struct mrf_list *node;

	mrf_lock_take(&agent->lock);
	node = mrf_list_pop(&agent->kicks);
	mrf_lock_release(&agent->lock);
	return node ? mrf_list_entry(node, struct mrf_kick, node) : NULL;
}

void mrf_agent_run_kicks(struct mrf_agent *agent)
{
	int64_t end = mrf_now_us() + MRF_TURN_US;
	struct mrf_kick *kick;
	int i = 0;

	/* Only this thread removes kicks, so the pointer stays valid without the lock. */
	while ((kick = next_kick(agent))) {
		kick->look(kick);
		if (++i == MRF_TURN_KICKS || mrf_now_us() >= end) {
			agent->more = true;
			break;
		}
	}
}

void mrf_agent_run_commands(struct mrf_agent *agent)
{
	struct mrf_list *node, later;

	mrf_list_init(&later);
	mrf_lock_take(&agent->lock);
	atomic_store(&agent->commanded, false);
	while ((node = mrf_list_pop(&agent->commands))) {
		struct mrf_command *command = mrf_list_entry(node, struct mrf_command, node);

		mrf_lock_release(&agent->lock);
		command->ret = command->run(agent, command->arg);
		if (command->ret == MRF_AGENT_LATER)
			mrf_list_add_tail(node, &later);
		else
			sem_post(&command->done);
		mrf_lock_take(&agent->lock);
	}
	while ((node = mrf_list_pop(&later))) {
		mrf_list_add_tail(node, &agent->commands);
		agent->more = true;
	}
	mrf_lock_release(&agent->lock);
}

void mrf_agent_wake(struct mrf_agent *agent)
{
	uint64_t one = 1;
	ssize_t n = write(agent->event_fd, &one, sizeof(one));

	(void)n; /* a full eventfd is readable, too */
}

void mrf_agent_kick(struct mrf_agent *agent, struct mrf_kick *kick)
{
	bool first;

	mrf_lock_take(&agent->lock);
	first = mrf_list_empty(&kick->node);
	if (first)
		mrf_list_add_tail(&kick->node, &agent->kicks);
	mrf_lock_release(&agent->lock);
	if (first)
		mrf_agent_wake(agent);
}

void mrf_agent_unkick(struct mrf_agent *agent, struct mrf_kick *kick)
{
	mrf_lock_take(&agent->lock);
	mrf_list_del(&kick->node);
	mrf_lock_release(&agent->lock);
}

int mrf_agent_command(struct mrf_agent *agent, void *arg,
		      int (*run)(struct mrf_agent *agent, void *arg))
{
	struct mrf_command command = { .run = run, .arg = arg };

	mrf_slow_call();
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

/* --- pins that are gone ----------------------------------------------------------- */

static void forget_owner(void *value, void *arg)
{
	struct mrf_owner *owner = value;

	(void)arg;
	if (owner->calls->forget)
		owner->calls->forget(owner);
}

void mrf_agent_tell_peers(struct mrf_agent *agent)
{
	if (mrf_likely(!atomic_exchange(&agent->dropped, false)))
		return;
	mrf_info(FI_LOG_MR,
		 "pins were dropped, because memory changed or room was needed: peers are told "
		 "to ask again");
	mrf_idmap_each(&agent->owners, forget_owner, NULL);
}

/* --- queues of the guest's -------------------------------------------------------- */

static int control(struct mrf_agent *agent, int op, struct mrf_vcq *cq, uint32_t events,
		   void *watcher)
{
	struct epoll_event event = { .events = events | EPOLLONESHOT, .data.ptr = watcher };

	return epoll_ctl(agent->epoll_fd, op, mrf_vcq_fd(cq), &event) ? -errno : 0;
}

int mrf_agent_cq_add(struct mrf_agent *agent, struct mrf_vcq *cq, void *watcher)
{
	return control(agent, EPOLL_CTL_ADD, cq, 0, watcher);
}

void mrf_agent_cq_watch(struct mrf_agent *agent, struct mrf_vcq *cq, void *watcher)
{
	mrf_vcq_arm(cq);
	control(agent, EPOLL_CTL_MOD, cq, EPOLLIN, watcher);
}

void mrf_agent_cq_remove(struct mrf_agent *agent, struct mrf_vcq *cq)
{
	control(agent, EPOLL_CTL_DEL, cq, 0, NULL);
}

/* --- what the guest is to see ----------------------------------------------------- */

void mrf_agent_dropped(struct mrf_agent *agent)
{
	if (!atomic_exchange(&agent->dropped, true))
		mrf_agent_wake(agent);
}

void mrf_agent_removed(struct mrf_agent *agent)
{
	if (!atomic_exchange(&agent->removed, true))
		mrf_agent_wake(agent);
}

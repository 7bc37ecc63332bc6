/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's thread: the events that it waits for, and what it does about them.
 *
 * It works in turns, and everything in a turn has a bound (budget.h). The application's
 * commands come first, because a thread waits for each of them (one that takes long is carried
 * on in the next turn); then events and
 * completions, timers and kicks; then peers. Completions are only taken in: immediate
 * data are counted, while questions and requests join the queue of their connection.
 * Connections that have something in their queue are served in turn, one message each,
 * until the time for peers is over or a command comes (target_serve.c). So opening an
 * endpoint, or the first question of a new peer, waits for one request and not for all
 * that peers can send.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "contract/budget.h"
#include "loop/agent_calls.h"
#include "verbs/vqp.h"

/* Tags of what epoll reports; any other value is the address of an endpoint. */
enum { TAG_EVENT, TAG_CM, TAG_CQ, TAG_DEVICE, TAG_LAST };

/* --- owners of work requests ------------------------------------------------------------- */

uint64_t mrf_agent_new_id(struct mrf_agent *agent)
{
	return ++agent->last_id;
}

int mrf_agent_own(struct mrf_agent *agent, struct mrf_owner *owner, unsigned want)
{
	int ret = mrf_agent_cq_take(agent, want, false, &owner->cq);

	if (ret)
		return ret;
	owner->id = mrf_agent_new_id(agent);
	ret = mrf_idmap_insert(&agent->owners, owner->id, owner);
	if (ret)
		owner->cq->used -= want;
	return ret;
}

void mrf_agent_disown(struct mrf_agent *agent, struct mrf_owner *owner, unsigned had)
{
	mrf_idmap_remove(&agent->owners, owner->id);
	mrf_agent_cq_owe(owner->cq, had);
	agent->more = true;
}

/* --- lost credentials ------------------------------------------------------------------------ */

/*
 * The kernel compares the credentials of the process that writes to a uverbs or rdma_cm
 * descriptor with those of the process that opened it. Registering is an ioctl, for which it
 * compares nothing, and goes on.
 *
 * A work request that is refused stays in the queue, which is shared memory, and runs
 * when something else moves the queue on. So it counts as posted, its connection is
 * marked (MRF_WC_DENIED), the agent puts the queue pair into error, and everything that
 * was posted comes back. Those operations fail with FI_EACCES, "may or may not have been
 * done"; the ones that were not posted fail with "nothing was done".
 *
 * When the agent's thread is refused as well, rdma_cm is lost: reading its events fails,
 * and its descriptor stays readable. mrf_vcm_abandon puts the end of a pipe in its place,
 * which makes the kernel end all connections and listeners and tell the peers. The agent
 * then ends its own connections and remains for closing. The memory that librdmacm has
 * allocated for the ids is lost. Where only the credentials of the application's thread
 * have changed (capset), the connection is made anew and everything else goes on.
 */
void mrf_agent_suspect(struct mrf_agent *agent)
{
	if (!agent->suspect_said)
		mrf_warn(FI_LOG_EP_CTRL, 5205,
			 "the credentials of this process have changed since it opened "
			 "the domain: the kernel accepts no more of its work requests, "
			 "and its connections end (open fabric, domain and endpoints "
			 "after such changes)");
	agent->suspect_said = true;
	agent->suspect = true;
}

/* Finds an owner that has something to end, which may change the map. */
static void search_one(void *value, void *arg)
{
	struct mrf_owner *owner = value, **found = arg;

	if (!*found && (!owner->calls->going || owner->calls->going(owner)))
		*found = owner;
}

void mrf_agent_denied(struct mrf_agent *agent)
{
	struct mrf_owner *found;

	if (atomic_exchange(&agent->denied, true))
		return;
	mrf_agent_suspect(agent);
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, mrf_vcm_fd(agent->cm), NULL);
	mrf_vcm_abandon(agent->cm);
	do {
		found = NULL;
		mrf_idmap_each(&agent->owners, search_one, &found);
		if (found)
			found->calls->end(found);
	} while (found);
}

int mrf_agent_refuse(void)
{
	return mrf_refuse(FI_EACCES, FI_LOG_EP_CTRL, 5204, "%s", MRF_DENIED_TEXT);
}

/* --- the device ------------------------------------------------------------------------------ */

/*
 * What the device reports, and what the agent does about it.
 *
 * - A completion queue or a queue pair in error ends the connections that use it, which
 *   are made anew. A queue pair at which a peer was refused, which newer kernels report
 *   as well, is left alone (verbs/vevent.c): the peer has a completion with the reason,
 *   and connects again.
 * - A port that goes down is logged.
 * - rdma_cm reports the removal of the device to each id, listeners included. The domain
 *   logs it once, and its operations fail with what to do. A removed device keeps working for
 *   processes that have it open, but its connections end, no peer reaches its listeners, and
 *   it never comes back to this domain, even if one of the same name is made.
 */
static void device_is_gone(struct mrf_agent *agent)
{
	if (atomic_exchange(&agent->gone, true))
		return;
	mrf_warn(FI_LOG_EP_CTRL, 4026,
		 "the device %s was removed: no peer reaches the endpoints of this domain any "
		 "more, and their operations fail (end the process and start it again)",
		 mrf_vdev_name(agent->vdev));
}

/* --- connections that the device has broken ----------------------------------------------- */

static void lose_owner(struct mrf_owner *owner)
{
	if (owner->calls->broke)
		owner->calls->broke(owner);
}

/* Do its completions arrive in this queue? */
static void lose_if_spoilt(void *value, void *arg)
{
	struct mrf_owner *owner = value;

	if (arg == owner->cq->vcq || arg == owner->scq)
		lose_owner(owner);
}

static void handle_device(struct mrf_agent *agent, const struct mrf_vdev_event *event)
{
	const char *name = mrf_vdev_name(agent->vdev);

	switch (event->type) {
	case MRF_VDEV_CQ_ERR:
		/*
		 * Completions are lost, and it is not known whose: no connection that uses the
		 * queue can go on.
		 */
		mrf_warn(
			FI_LOG_EP_CTRL, 4027,
			"%s: a completion queue is in error: the connections that use it are re-established",
			name);
		mrf_idmap_each(&agent->owners, lose_if_spoilt, (void *)(uintptr_t)event->cq);
		break;
	case MRF_VDEV_QP_ERR:
		mrf_warn(FI_LOG_EP_CTRL, 4028, "%s: %s: the connection is re-established", name,
			 event->text);
		if (event->owner)
			lose_owner(event->owner);
		break;
	case MRF_VDEV_GONE:
		device_is_gone(agent);
		break;
	case MRF_VDEV_PORT_DOWN:
		mrf_warn(FI_LOG_EP_CTRL, 4029,
			 "%s: the port is down: operations wait until it is up, or time out", name);
		break;
	default:
		mrf_info(FI_LOG_EP_CTRL, "%s: %s", name, event->text);
	}
}

static void poll_device(struct mrf_agent *agent)
{
	struct mrf_vdev_event event;
	int i;

	/* The descriptor stays readable while there are more. */
	for (i = 0; i < MRF_TURN_EVENTS && !mrf_vdev_next_event(agent->vdev, &event); i++)
		handle_device(agent, &event);
}

/* --- events ------------------------------------------------------------------------------ */

static void handle_message(struct mrf_agent *agent, const struct mrf_wc *wc)
{
	struct mrf_owner *owner = mrf_idmap_find(&agent->owners, wc->wr_id >> MRF_WR_SLOT_BITS);
	unsigned slot = wc->wr_id & ((1u << MRF_WR_SLOT_BITS) - 1);

	/* Completions of a connection that is gone may still come. */
	if (owner)
		owner->calls->message(owner, slot, wc);
}

/* An owner, too, may say that there is more. */
static void handle_messages(struct mrf_agent *agent, unsigned max)
{
	if (mrf_agent_cq_handle(agent, max, handle_message))
		agent->more = true;
}

void mrf_agent_poll(struct mrf_agent *agent)
{
	/* The queues never hold more than this; later completions need not be among them. */
	handle_messages(agent, MRF_AGENT_CQ);
}

static void poll_cm(struct mrf_agent *agent)
{
	struct mrf_cm_event event;
	int64_t end = mrf_now_us() + MRF_TURN_US;
	int i = 0, ret;

	agent->suspect = false;
	if (agent->denied)
		return;
	while (!(ret = mrf_vcm_next(agent->cm, &event))) {
		/* rdma_cm reports a removal to each id, listeners included. */
		if (mrf_unlikely(event.type == MRF_CM_REMOVED))
			device_is_gone(agent);
		if (event.type != MRF_CM_OTHER) {
			struct mrf_owner *owner = mrf_vconn_owner(event.conn);

			owner->calls->event(owner, &event);
		}
		if (++i == MRF_TURN_EVENTS || mrf_now_us() >= end)
			break;
	}
	if (mrf_unlikely(ret == -FI_EACCES))
		mrf_agent_denied(agent);
}

/* --- the thread ------------------------------------------------------------------------------ */

void mrf_timer_set(struct mrf_agent *agent, struct mrf_timer *timer, int64_t ms)
{
	mrf_timer_stop(agent, timer);
	timer->node.key = mrf_now_ms() + ms;
	mrf_heap_insert(&agent->timed, &timer->node);
}

void mrf_timer_stop(struct mrf_agent *agent, struct mrf_timer *timer)
{
	mrf_heap_remove(&agent->timed, &timer->node);
}

/*
 * Runs the timers that are due, for a limited time, because a timer may end something that
 * takes the kernel long, such as a connection attempt. The others run in the next turn, which
 * begins at once.
 */
static void expire(struct mrf_agent *agent)
{
	int64_t now = mrf_now_ms(), end = mrf_now_us() + MRF_TURN_US;

	while (agent->timed.least && agent->timed.least->key <= now) {
		struct mrf_timer *timer =
			mrf_container_of(agent->timed.least, struct mrf_timer, node);

		mrf_timer_stop(agent, timer);
		timer->over(timer);
		if (mrf_now_us() >= end)
			break;
	}
}

static int next_timeout(struct mrf_agent *agent)
{
	int64_t now;

	if (agent->more)
		return 0;
	if (!agent->timed.least)
		return -1;
	now = mrf_now_ms();
	return agent->timed.least->key > now ? (int)(agent->timed.least->key - now) : 0;
}

static void handle_ready(struct mrf_agent *agent, const struct epoll_event *event)
{
	uint64_t count;
	ssize_t n;

	switch (event->data.u64) {
	case TAG_EVENT:
		n = read(agent->event_fd, &count, sizeof(count));
		(void)n;
		break;
	case TAG_CM:
		poll_cm(agent);
		break;
	case TAG_CQ:
		mrf_agent_cq_event(agent);
		agent->more = true;
		break;
	case TAG_DEVICE:
		poll_device(agent);
		break;
	default:
		agent->guest->completed(event->data.ptr);
	}
}

/*
 * The application's commands come first, then timers, then peers; each has a bound (budget.h), so
 * that the next turn is never far away.
 */
static void turn(struct mrf_agent *agent)
{
	struct epoll_event events[16];
	int i, n;

	/*
	 * Commands come before the wait, because one may free the endpoint that an event belongs
	 * to.
	 */
	mrf_agent_run_commands(agent);
	n = epoll_wait(agent->epoll_fd, events, MRF_ARRAY_SIZE(events), next_timeout(agent));
	mrf_agent_tell_peers(agent);
	if (mrf_unlikely(atomic_exchange(&agent->removed, false)))
		agent->guest->removed(agent);
	for (i = 0; i < n; i++)
		handle_ready(agent, &events[i]);
	expire(agent);
	if (agent->more) {
		agent->more = false;
		handle_messages(agent, MRF_TURN_TAKEN / agent->ncqs);
	}
	mrf_agent_run_kicks(agent);
	mrf_agent_run_jobs(agent);
	if (mrf_unlikely(agent->suspect))
		poll_cm(agent);
	if (agent->guest->serve(agent))
		agent->more = true;
	agent->guest->over(agent);
}

static void *agent_main(void *arg)
{
	struct mrf_agent *agent = arg;

	mrf_thread_own();
	while (!atomic_load(&agent->stop))
		turn(agent);
	return NULL;
}

/* --- starting and stopping ------------------------------------------------------------------- */

static int epoll_add(struct mrf_agent *agent, int fd, uint64_t tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_all(struct mrf_agent *agent)
{
	int ret = epoll_add(agent, agent->event_fd, TAG_EVENT);

	if (!ret)
		ret = epoll_add(agent, mrf_vcm_fd(agent->cm), TAG_CM);
	if (!ret)
		ret = epoll_add(agent, mrf_vcq_fd(agent->cq), TAG_CQ);
	if (!ret)
		ret = epoll_add(agent, mrf_vdev_event_fd(agent->vdev), TAG_DEVICE);
	return ret;
}

static int open_fds(struct mrf_agent *agent)
{
	agent->epoll_fd = mrf_fd_high(epoll_create1(EPOLL_CLOEXEC));
	if (agent->epoll_fd < 0)
		return -errno;
	agent->event_fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (agent->event_fd < 0) {
		int err = errno;

		close(agent->epoll_fd);
		return -err;
	}
	return 0;
}

int mrf_agent_start(struct mrf_agent *agent, struct mrf_vdev *vdev,
		    const struct mrf_agent_guest *guest)
{
	struct mrf_agent_cq *first;
	int ret;

	*agent = (struct mrf_agent){ .vdev = vdev, .guest = guest };
	mrf_lock_init(&agent->lock, MRF_RANK_AGENT);
	mrf_list_init(&agent->kicks);
	mrf_list_init(&agent->commands);
	mrf_list_init(&agent->cqs);
	mrf_idmap_init(&agent->owners);
	mrf_crews_init(agent);
	ret = open_fds(agent);
	if (ret)
		goto err_lock;
	ret = mrf_vcm_open(&agent->cm);
	if (ret)
		goto err_fds;
	ret = mrf_agent_cq_open(agent, false, &first);
	if (ret)
		goto err_cm;
	ret = watch_all(agent);
	if (!ret)
		ret = mrf_thread_start(&agent->thread, agent_main, agent, "mrfab-agent");
	if (!ret)
		return 0;
	mrf_agent_cq_close(agent);
err_cm:
	mrf_vcm_close(agent->cm);
err_fds:
	close(agent->event_fd);
	close(agent->epoll_fd);
err_lock:
	mrf_crews_fini(agent);
	mrf_lock_fini(&agent->lock);
	return ret;
}

void mrf_agent_stop(struct mrf_agent *agent)
{
	atomic_store(&agent->stop, true);
	mrf_agent_wake(agent);
	pthread_join(agent->thread, NULL);
	mrf_crews_stop(agent);
	mrf_agent_cq_close(agent);
	mrf_vcm_close(agent->cm);
	close(agent->event_fd);
	close(agent->epoll_fd);
	mrf_idmap_fini(&agent->owners);
	mrf_lock_fini(&agent->lock);
}

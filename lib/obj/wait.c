/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "obj/obj.h"
#include "obj/wait.h"

#define NS_PER_MS 1000000ull

static const char *const kind_names[] = {
	[FI_WAIT_NONE] = "FI_WAIT_NONE",
	[FI_WAIT_UNSPEC] = "FI_WAIT_UNSPEC",
	[FI_WAIT_SET] = "FI_WAIT_SET",
	[FI_WAIT_FD] = "FI_WAIT_FD",
	[FI_WAIT_MUTEX_COND] = "FI_WAIT_MUTEX_COND",
	[FI_WAIT_YIELD] = "FI_WAIT_YIELD",
	[FI_WAIT_POLLFD] = "FI_WAIT_POLLFD",
};

static int check_wait_obj(enum fi_wait_obj kind)
{
	if (kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_FD)
		return 0;
	if ((size_t)kind >= MRF_ARRAY_SIZE(kind_names))
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2010,
				  "wait_obj=%d is not a wait object of fi_eq(3)", (int)kind);
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2011,
			  "wait_obj=%s: only FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD are "
			  "offered",
			  kind_names[kind]);
}

static int watch_fd(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_links_locked(struct mrf_wait *wait);

static void close_fds(struct mrf_wait *wait)
{
	if (wait->epoll_fd >= 0)
		close(wait->epoll_fd);
	if (wait->source_fd >= 0)
		close(wait->source_fd);
	if (wait->bell.fd >= 0)
		close(wait->bell.fd);
	wait->epoll_fd = wait->source_fd = wait->bell.fd = -1;
}

static int open_fds_locked(struct mrf_wait *wait)
{
	int ret = mrf_bell_init(&wait->bell);

	mrf_lock_held(&wait->lock);
	if (ret)
		return ret;
	wait->source_fd = mrf_fd_high(epoll_create1(EPOLL_CLOEXEC));
	if (wait->source_fd < 0)
		return -errno;
	wait->epoll_fd = mrf_fd_high(epoll_create1(EPOLL_CLOEXEC));
	if (wait->epoll_fd < 0)
		return -errno;
	ret = watch_fd(wait->epoll_fd, wait->bell.fd);
	if (!ret)
		ret = watch_fd(wait->epoll_fd, wait->source_fd);
	return ret ? ret : watch_links_locked(wait);
}

/* Once this has returned 0, the descriptors stay until the object is closed. */
static int need_fds(struct mrf_wait *wait)
{
	int ret = 0;

	mrf_lock_take(&wait->lock);
	if (wait->epoll_fd < 0) {
		ret = open_fds_locked(wait);
		if (ret)
			close_fds(wait);
	}
	mrf_lock_release(&wait->lock);
	if (!ret)
		return 0;
	return mrf_refuse(-ret, FI_LOG_FABRIC, 2012,
			  "there are no file descriptors for a wait object, which needs "
			  "three, and one more for each waiting thread");
}

int mrf_wait_init(struct mrf_wait *wait, enum fi_wait_obj kind)
{
	int ret = check_wait_obj(kind);

	if (ret)
		return ret;
	wait->kind = kind;
	wait->epoll_fd = wait->source_fd = wait->bell.fd = -1;
	atomic_init(&wait->bell.rung, false);
	mrf_lock_init(&wait->lock, MRF_RANK_WAIT);
	mrf_list_init(&wait->links);
	mrf_sleepers_init(&wait->sleepers);
	atomic_init(&wait->waiters, 0);
	atomic_init(&wait->watched, false);
	return kind == FI_WAIT_FD ? need_fds(wait) : 0;
}

void mrf_wait_fini(struct mrf_wait *wait)
{
	mrf_sleepers_fini(&wait->sleepers);
	close_fds(wait);
	mrf_lock_fini(&wait->lock);
}

int mrf_wait_refuse_close(unsigned threads)
{
	return mrf_refuse(FI_EBUSY, FI_LOG_FABRIC, 2013,
			  "the object cannot be closed: %u thread%s blocked on it", threads,
			  threads == 1 ? " is" : "s are");
}

int mrf_wait_busy(struct mrf_wait *wait)
{
	unsigned n = mrf_sleepers_count(&wait->sleepers);

	return n ? mrf_wait_refuse_close(n) : 0;
}

static bool is_linked_locked(const struct mrf_wait *wait, const struct mrf_source *source)
{
	mrf_lock_held(&wait->lock);
	mrf_list_each (node, &wait->links) {
		if (mrf_list_entry(node, struct mrf_wait_link, node)->source == source)
			return true;
	}
	return false;
}

/* Watches each source that was linked before there were descriptors. */
static int watch_links_locked(struct mrf_wait *wait)
{
	int ret;

	mrf_list_each (node, &wait->links) {
		struct mrf_wait_link *link = mrf_list_entry(node, struct mrf_wait_link, node);

		if (link->source->fd < 0)
			continue;
		ret = watch_fd(wait->source_fd, link->source->fd);
		if (ret && ret != -EEXIST)
			return ret;
	}
	return 0;
}

int mrf_wait_link(struct mrf_wait *wait, struct mrf_wait_link *link, struct mrf_source *source)
{
	int ret = 0;

	mrf_lock_take(&wait->lock);
	if (wait->source_fd >= 0 && source->fd >= 0 && !is_linked_locked(wait, source))
		ret = watch_fd(wait->source_fd, source->fd);
	if (!ret) {
		link->source = source;
		link->wait = wait;
		link->inside = 0;
		mrf_list_add_tail(&link->node, &wait->links);
	}
	mrf_lock_release(&wait->lock);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_FABRIC, 2014,
				  "descriptor %d of an endpoint cannot be waited for", source->fd);
	/* A thread that sleeps already has not armed this source. */
	mrf_wait_signal(wait);
	return 0;
}

/* Releases wait->lock meanwhile. The link stays in the list, so the caller goes on from it. */
static void finish_locked(struct mrf_wait *wait, struct mrf_wait_link *link)
{
	mrf_lock_held(&wait->lock);
	link->inside++;
	mrf_lock_release(&wait->lock);
	link->source->finish(link->source);
	mrf_lock_take(&wait->lock);
	link->inside--;
}

void mrf_wait_call(struct mrf_wait_link *link)
{
	struct mrf_wait *wait = atomic_load(&link->wait);

	if (wait)
		mrf_wait_signal(wait);
}

bool mrf_wait_asleep(const struct mrf_wait_link *link)
{
	struct mrf_wait *wait = atomic_load(&link->wait);

	return wait && atomic_load(&wait->waiters) > atomic_load(&wait->watched);
}

void mrf_wait_finish(struct mrf_wait *wait)
{
	mrf_lock_take(&wait->lock);
	mrf_list_each (node, &wait->links) {
		struct mrf_wait_link *link = mrf_list_entry(node, struct mrf_wait_link, node);

		if (atomic_load(&link->source->left))
			finish_locked(wait, link);
	}
	mrf_lock_release(&wait->lock);
}

/* Takes wait->lock at a moment when no thread is inside the link. */
static void lock_when_left(struct mrf_wait *wait, const struct mrf_wait_link *link)
{
	mrf_lock_take(&wait->lock);
	while (link->inside) {
		mrf_lock_release(&wait->lock);
		usleep(20);
		mrf_lock_take(&wait->lock);
	}
}

void mrf_wait_unlink(struct mrf_wait_link *link)
{
	struct mrf_wait *wait = link->wait;

	if (!wait)
		return;
	lock_when_left(wait, link);
	mrf_list_del(&link->node);
	if (wait->source_fd >= 0 && link->source->fd >= 0 && !is_linked_locked(wait, link->source))
		epoll_ctl(wait->source_fd, EPOLL_CTL_DEL, link->source->fd, NULL);
	link->wait = NULL;
	mrf_lock_release(&wait->lock);
}

static void arm_bell(struct mrf_wait *wait, struct mrf_bell *bell, bool fired)
{
	mrf_bell_silence(bell);
	mrf_lock_take(&wait->lock);
	mrf_list_each (node, &wait->links) {
		struct mrf_wait_link *link = mrf_list_entry(node, struct mrf_wait_link, node);

		link->source->arm(link->source, fired);
	}
	mrf_lock_release(&wait->lock);
}

void mrf_wait_signal(struct mrf_wait *wait)
{
	if (mrf_likely(!mrf_wait_heard(wait)))
		return;
	mrf_sleepers_wake(&wait->sleepers);
	if (atomic_load(&wait->watched))
		mrf_bell_ring(&wait->bell);
}

/* The thread is woken by every signal from here until fall_awake. NULL: errno says why. */
static struct mrf_sleeper *fall_asleep(struct mrf_wait *wait)
{
	struct mrf_sleeper *sleeper = mrf_sleeper_begin(&wait->sleepers);

	if (sleeper)
		atomic_fetch_add(&wait->waiters, 1);
	return sleeper;
}

static void fall_awake(struct mrf_wait *wait, struct mrf_sleeper *sleeper)
{
	mrf_sleeper_end(&wait->sleepers, sleeper);
	atomic_fetch_sub(&wait->waiters, 1);
}

/*
 * Milliseconds left for poll(2), rounded up so that it never returns early; -1: for ever.
 */
static int left_ms(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return -1;
	now = (uint64_t)mrf_now_ns();
	return now >= deadline ? 0 : (int)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* A thread that sleeps. */
struct sleep {
	struct mrf_wait *wait;
	struct mrf_sleeper *sleeper;
	int cancel; /* whether it may be cancelled, as the application has it */
	bool fired; /* by a source, since they were armed */
};

static void cancelled(void *arg)
{
	const struct sleep *s = arg;

	fall_awake(s->wait, s->sleeper);
}

/* noinline: the C library's macros save registers that the caller goes on using. */
static __attribute__((noinline)) int poll_for(struct sleep *s, int ms)
{
	struct pollfd fds[] = { { .fd = s->sleeper->bell.fd, .events = POLLIN },
				{ .fd = s->wait->source_fd, .events = POLLIN } };
	int ignored, ret;

	mrf_slow_call();
	pthread_cleanup_push(cancelled, s);
	pthread_setcancelstate(s->cancel, &ignored);
	ret = poll(fds, MRF_ARRAY_SIZE(fds), ms);
	if (ret < 0)
		ret = -errno;
	s->fired = fds[1].revents;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
	pthread_cleanup_pop(0);
	return ret;
}

static int block_until(struct sleep *s, uint64_t deadline)
{
	int left = left_ms(deadline), n;

	/* The deadline holds even if events for other threads keep coming. */
	if (!left)
		return -FI_ETIMEDOUT;
	n = poll_for(s, left);
	if (n < 0)
		return n;
	return n ? 0 : -FI_ETIMEDOUT;
}

void mrf_wait_poll_first(struct mrf_wait *wait)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	mrf_wait_poll(wait);
	pthread_setcancelstate(state, &state);
}

/*
 * The time is over. On a busy machine the thread may run again much later: an event that has come
 * by then counts as in time.
 */
static ssize_t last_attempt(struct mrf_wait *wait, ssize_t (*attempt)(void *arg), void *arg)
{
	ssize_t ret;

	mrf_wait_poll(wait);
	ret = attempt(arg);
	return ret == -FI_EAGAIN ? -FI_ETIMEDOUT : ret;
}

static ssize_t sleep_until(struct sleep *s, uint64_t deadline, ssize_t (*attempt)(void *arg),
			   void *arg)
{
	ssize_t ret;

	s->sleeper = fall_asleep(s->wait);
	if (!s->sleeper)
		return -errno;
	do {
		arm_bell(s->wait, &s->sleeper->bell, s->fired);
		mrf_wait_poll(s->wait);
		ret = attempt(arg);
		if (ret != -FI_EAGAIN)
			break;
		ret = block_until(s, deadline);
	} while (!ret);
	if (ret == -FI_ETIMEDOUT)
		ret = last_attempt(s->wait, attempt, arg);
	fall_awake(s->wait, s->sleeper);
	return ret;
}

ssize_t mrf_wait_until(struct mrf_wait *wait, int timeout, ssize_t (*attempt)(void *arg), void *arg)
{
	uint64_t deadline = UINT64_MAX;
	struct sleep s = { .wait = wait };
	ssize_t ret;

	if (!timeout)
		return -FI_ETIMEDOUT;
	if (timeout > 0)
		deadline = (uint64_t)mrf_now_ns() + (uint64_t)timeout * NS_PER_MS;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &s.cancel);
	ret = need_fds(wait);
	if (!ret)
		ret = sleep_until(&s, deadline, attempt, arg);
	pthread_setcancelstate(s.cancel, &s.cancel);
	return ret;
}

/* From now on the application may wait on the descriptor, without calling us. */
static int watch_wait(struct mrf_wait *wait)
{
	int ret = need_fds(wait);

	if (!ret && !atomic_exchange(&wait->watched, true))
		atomic_fetch_add(&wait->waiters, 1);
	return ret;
}

int mrf_wait_try(struct mrf_wait *wait)
{
	int ret;

	if (wait->kind == FI_WAIT_NONE)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2016,
				  "fi_trywait on an object with FI_WAIT_NONE: there is "
				  "nothing to block on");
	ret = watch_wait(wait);
	if (ret)
		return ret;
	arm_bell(wait, &wait->bell, true);
	mrf_wait_poll(wait);
	return 0;
}

static int get_fd(struct mrf_wait *wait, int *fd)
{
	int ret;

	if (wait->kind == FI_WAIT_NONE)
		return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 2017,
				  "FI_GETWAIT on an object with FI_WAIT_NONE: it has no "
				  "wait object");
	ret = watch_wait(wait);
	if (!ret)
		*fd = wait->epoll_fd;
	return ret;
}

int mrf_wait_control(struct mrf_wait *wait, struct fid *fid, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return mrf_no_control(fid, command, arg);
	if (!arg)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_FABRIC, 2018,
			"fi_control(%s): arg must point to where the answer goes, but is NULL",
			command == FI_GETWAIT ? "FI_GETWAIT" : "FI_GETWAITOBJ");
	if (command == FI_GETWAIT)
		return get_fd(wait, arg);
	/* FI_WAIT_UNSPEC is answered with the kind that FI_GETWAIT returns. */
	*(enum fi_wait_obj *)arg = wait->kind == FI_WAIT_NONE ? FI_WAIT_NONE : FI_WAIT_FD;
	return 0;
}

int mrf_wait_may_block(const struct mrf_wait *wait, const char *call)
{
	if (wait->kind != FI_WAIT_NONE)
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2019,
			  "%s on an object opened with FI_WAIT_NONE: open it with "
			  "FI_WAIT_UNSPEC or FI_WAIT_FD to block",
			  call);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/page.h"
#include "base/param.h"
#include "monitor/discard.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"

static struct mrf_lock lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_PIN,
#endif
};

/* Starting and ending the thread, which never takes this one. */
static pthread_mutex_t admin = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;	  /* admin */
static pthread_t thread;  /* admin */
static int stop_fd = -1;  /* admin */
static bool said_unknown; /* admin: that FI_MRFAB_MONITOR is wrong */
static bool said_why;	  /* admin: why there is none */

static atomic_int owner; /* process that has the thread; 0: none */

/* Guarded by lock. */
static int fd = -1;
static uintptr_t trap; /* a page that cannot be read, see mrf_uffd_verify */
static struct mrf_list clients = { &clients, &clients };
static struct mrf_list watches = { &watches, &watches };
static struct mrf_discards discards;

void mrf_monitor_lock(void)
{
	mrf_lock_take(&lock);
}

void mrf_monitor_unlock(void)
{
	mrf_lock_release(&lock);
}

bool mrf_monitor_usable(void)
{
	return atomic_load_explicit(&owner, memory_order_acquire) == getpid();
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- watches ---------------------------------------------------------------------- */

/* A discarded range is registered again after a while, to hear when it is unmapped. */
static void arm(struct mrf_discard *entry)
{
	if (entry->armed || now_ms() - entry->at < MRF_DISCARD_MS)
		return;
	entry->armed = !mrf_uffd_register(fd, entry->start, entry->end - entry->start);
}

int mrf_monitor_watch(struct mrf_watch *watch)
{
	struct mrf_discard *entry;
	int ret;

	if (!mrf_monitor_usable())
		return -FI_ENOSYS;
	entry = mrf_discard_find(&discards, watch->start, watch->start + watch->len);
	if (entry) {
		arm(entry);
		return -FI_EINVAL;
	}
	ret = mrf_uffd_register(fd, watch->start, watch->len);
	if (ret)
		return ret == -FI_EBUSY ? ret : -FI_EINVAL;
	mrf_list_add_tail(&watch->node, &watches);
	ret = mrf_uffd_verify(fd, watch->start, watch->len, trap);
	if (ret)
		mrf_monitor_unwatch(watch);
	return ret;
}

/* Unregisters what of [start, end) no watch from pos on covers. */
static void release(uintptr_t start, uintptr_t end, const struct mrf_list *pos)
{
	for (; pos != &watches; pos = pos->next) {
		const struct mrf_watch *other =
			mrf_list_entry(pos, struct mrf_watch, node);

		if (other->start >= end || other->start + other->len <= start)
			continue;
		if (start < other->start)
			release(start, other->start, pos->next);
		start = other->start + other->len;
		if (start >= end)
			return;
	}
	mrf_uffd_unregister(fd, start, end - start);
}

void mrf_monitor_unwatch(struct mrf_watch *watch)
{
	if (mrf_list_empty(&watch->node))
		return;
	mrf_list_del(&watch->node);
	if (mrf_monitor_usable())
		release(watch->start, watch->start + watch->len, watches.next);
}

/* --- events ----------------------------------------------------------------------- */

static void unwatch_all(void)
{
	struct mrf_list *node;
	unsigned i;

	while ((node = mrf_list_pop(&watches))) {
		struct mrf_watch *watch = mrf_list_entry(node, struct mrf_watch, node);

		mrf_uffd_unregister(fd, watch->start, watch->len);
	}
	for (i = 0; i < discards.count; i++) {
		struct mrf_discard *entry = &discards.entry[i];

		if (entry->armed)
			mrf_uffd_unregister(fd, entry->start, entry->end - entry->start);
		entry->armed = false;
	}
}

static void drop_all(void)
{
	unwatch_all();
	mrf_list_each (node, &clients) {
		struct mrf_monitor_client *client =
			mrf_list_entry(node, struct mrf_monitor_client, node);

		client->drop(client->arg);
	}
	mrf_list_each (node, &clients) {
		struct mrf_monitor_client *client =
			mrf_list_entry(node, struct mrf_monitor_client, node);

		if (client->dropped)
			client->dropped(client->arg);
	}
}

static void take_in(const struct mrf_uffd_event *event)
{
	switch (event->kind) {
	case MRF_UFFD_REMOVE:
		mrf_discard_add(&discards, event->start, event->end, now_ms());
		break;
	case MRF_UFFD_UNMAP:
		mrf_discard_unmapped(&discards, event->start, event->end, now_ms());
		break;
	case MRF_UFFD_REMAP:
		/* What moved is registered still, at its new place. */
		mrf_uffd_unregister(fd, event->start, event->end - event->start);
		break;
	default:
		break;
	}
}

static void handle_events(void)
{
	struct mrf_uffd_event event;

	mrf_monitor_lock();
	drop_all();
	while (mrf_uffd_read(fd, &event))
		take_in(&event);
	mrf_monitor_unlock();
}

static void *monitor_main(void *arg)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
				 { .fd = stop_fd, .events = POLLIN } };

	(void)arg;
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents & POLLIN)
			handle_events();
		else if (fds[1].revents)
			return NULL;
	}
}

/* --- coming and going ------------------------------------------------------------- */

/*
 * A child has neither the thread nor clients, and what it opens itself starts from
 * nothing. While it has the parent's descriptor, closing that one would wake nobody there.
 */
static void in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	if (atomic_exchange(&owner, 0)) {
		close(fd);
		close(stop_fd);
	}
	fd = stop_fd = -1;
	trap = 0;
	users = 0;
	admin = fresh;
	mrf_list_init(&clients);
	mrf_list_init(&watches);
	memset(&discards, 0, sizeof(discards));
	/* Another thread may have had it at the time of the fork. */
	atomic_store(&lock.state, 0);
}

static void once(void)
{
	/* Without it, it works as long as nobody forks. */
	(void)pthread_atfork(NULL, NULL, in_child);
}

static int start_thread(void)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, NULL, monitor_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

static int open_all(void)
{
	void *page = mmap(NULL, mrf_page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	trap = (uintptr_t)page;
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (stop_fd < 0)
		return -errno;
	fd = mrf_uffd_open();
	return fd < 0 ? fd : 0;
}

static void close_all(void)
{
	if (fd >= 0)
		close(fd);
	if (stop_fd >= 0)
		close(stop_fd);
	if (trap)
		munmap((void *)trap, mrf_page_size());
	fd = stop_fd = -1;
	trap = 0;
	memset(&discards, 0, sizeof(discards));
}

static bool wanted(void)
{
	const char *which = mrf_param_str(MRF_PARAM_MONITOR);

	if (!which || !strcmp(which, "userfaultfd"))
		return true;
	if (strcmp(which, "none") && !said_unknown) {
		mrf_warn(FI_LOG_MR, 3050,
			 "FI_MRFAB_MONITOR=%s: must be userfaultfd or none; none it is",
			 which);
		said_unknown = true;
	}
	return false;
}

static void start(void)
{
	int ret;

	if (!wanted())
		return;
	ret = open_all();
	if (!ret)
		ret = start_thread();
	if (!ret) {
		atomic_store_explicit(&owner, getpid(), memory_order_release);
		return;
	}
	if (!said_why)
		mrf_warn(FI_LOG_MR, 3051,
			 "userfaultfd cannot be had (%s): memory that is not pinned for "
			 "good is pinned anew for each remote access",
			 strerror(-ret));
	said_why = true;
	close_all();
}

static void stop(void)
{
	uint64_t one = 1;

	if (!mrf_monitor_usable())
		return;
	/* The thread's own stack may be among what is registered still. */
	mrf_monitor_lock();
	unwatch_all();
	mrf_monitor_unlock();
	if (write(stop_fd, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(thread, NULL);
	mrf_monitor_lock();
	atomic_store_explicit(&owner, 0, memory_order_release);
	mrf_monitor_unlock();
	close_all();
}

void mrf_monitor_add(struct mrf_monitor_client *client)
{
	static pthread_once_t forks = PTHREAD_ONCE_INIT;

	pthread_once(&forks, once);
	pthread_mutex_lock(&admin);
	if (!users++)
		start();
	mrf_monitor_lock();
	mrf_list_add_tail(&client->node, &clients);
	mrf_monitor_unlock();
	pthread_mutex_unlock(&admin);
}

void mrf_monitor_remove(struct mrf_monitor_client *client)
{
	pthread_mutex_lock(&admin);
	mrf_monitor_lock();
	mrf_list_del(&client->node);
	mrf_monitor_unlock();
	if (!--users)
		stop();
	pthread_mutex_unlock(&admin);
}

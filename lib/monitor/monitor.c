/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which changes are heard of, and how: by hooks and by userfaultfd, both by default.
 *
 * Hooks (hooks.c) drop exactly what overlaps the range, before the call; but a direct
 * system call goes around them. userfaultfd is the net for these. It alone would not do:
 * the thread that makes the change goes on the moment its event is read, while what the
 * event says can only be known by reading it. Therefore every event drops all kept pins,
 * and only then it is read. By then other threads may have the address already: a direct
 * system call in a process of several threads can be late (BUGS in mrfab(7)).
 *
 * A discard that userfaultfd tells of comes before the kernel takes the pages away, and
 * nothing says when it has: pages that were discarded so are not watched again but
 * leased.
 *
 * Watching by userfaultfd splits mappings. The kernel does not keep watched pages and
 * others in one mapping, and mremap moves one mapping at a time: across the edge of what
 * is watched it fails with EFAULT. So what is watched is the whole window, also where
 * less is pinned (mr/demand/pin.h). The number of mappings is limited (vm.max_map_count):
 * a process that has half of that many gets no more by watching, its memory is leased.
 * userfaultfd is the default all the same: so many mappings are rare, and system calls
 * around the hooks are not.
 *
 * One thread per process reads userfaultfd, started with the first pin that has to be
 * watched. A forked child starts from nothing.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/maps.h"
#include "base/page.h"
#include "base/env.h"
#include "monitor/discard.h"
#include "monitor/hooks.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"

static struct mrf_lock lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_PIN,
#endif
};

/* Guards starting and ending the thread, which never takes this lock. */
static pthread_mutex_t admin = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;	  /* admin */
static pthread_t thread;  /* admin */
static int stop_fd = -1;  /* admin */
static bool said_unknown; /* admin: that FI_MRFAB_MONITOR is wrong */
static bool said_why;	  /* admin: why there is none */

static atomic_int owner; /* process that has the monitor; 0: none */

/* Guarded by lock. */
static int fd = -1;	      /* userfaultfd; -1: the hooks have to do */
static unsigned mappings_max; /* the number that the kernel allows this process */
static uintptr_t trap;	      /* a page that cannot be read, see mrf_uffd_verify */
static struct mrf_list clients = { &clients, &clients };
static struct mrf_itree watches; /* each node's value: its struct mrf_watch */
static struct mrf_discards discards;
static sigset_t signals; /* of the thread that holds the lock, before it took it */

atomic_bool mrf_monitor_learning;
static atomic_uintptr_t holder; /* thread that holds the lock; 0: none */

static void changing(uintptr_t start, uintptr_t end);
/* armed: the number of watches */
static struct mrf_hooks_listener listener = { .changing = changing };

/* No handler may change mappings meanwhile: the hook would wait for this thread. */
void mrf_monitor_lock(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	mrf_lock_take(&lock);
	signals = before;
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

void mrf_monitor_unlock(void)
{
	sigset_t before = signals;

	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	mrf_lock_release(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

#ifdef MRF_LOCKRANK
void mrf_monitor_held(void)
{
	mrf_lock_held(&lock);
}
#endif

bool mrf_monitor_usable(void)
{
	return atomic_load_explicit(&owner, memory_order_acquire) == getpid();
}

/* --- watches ---------------------------------------------------------------------- */

int mrf_watch_init(struct mrf_watch *watch, struct mrf_monitor_client *client)
{
	watch->client = client;
	watch->node = mrf_itree_node_new();
	return watch->node ? 0 : -FI_ENOMEM;
}

void mrf_watch_fini(struct mrf_watch *watch)
{
	mrf_itree_node_free(watch->node);
	watch->node = NULL;
}

static uintptr_t end_of(const struct mrf_watch *watch)
{
	return watch->start + watch->len;
}

/* The first watch that overlaps, or NULL. */
static struct mrf_watch *first_watch_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *node = mrf_itree_first(&watches, start, end);

	mrf_lock_held(&lock);
	return node ? mrf_itree_value(node) : NULL;
}

/* A discarded range is registered again after a while, to hear when it is unmapped. */
static void arm_discard_locked(struct mrf_discard *entry)
{
	mrf_lock_held(&lock);
	if (entry->armed || (uint64_t)mrf_now_ms() - entry->at < MRF_DISCARD_MS)
		return;
	entry->armed = !mrf_uffd_register(fd, entry->start, entry->end - entry->start);
}

/* Has the kernel report the changes that go around the hooks. */
static int watch_uffd_locked(const struct mrf_watch *watch)
{
	int ret;

	mrf_lock_held(&lock);
	if (fd < 0)
		return 0;
	ret = mrf_uffd_register(fd, watch->start, watch->len);
	if (ret)
		return ret == -FI_EBUSY ? ret : -FI_EINVAL;
	return mrf_uffd_verify(fd, watch->start, watch->len, trap);
}

bool mrf_monitor_has_room(unsigned mappings)
{
	bool room;

	mrf_monitor_lock();
	room = fd < 0 || mappings < mappings_max / 2;
	mrf_monitor_unlock();
	return room;
}

/* Arms the hooks before the calls that may have passed them unarmed are counted. */
static void enter_watch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	mrf_itree_insert(&watches, watch->node, watch->start, end_of(watch), watch);
	atomic_fetch_add(&listener.armed, 1);
}

static void leave_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	mrf_itree_remove(&watches, watch->node);
	atomic_fetch_sub(&listener.armed, 1);
}

int mrf_monitor_watch_locked(struct mrf_watch *watch)
{
	uintptr_t end = watch->start + watch->len;
	struct mrf_discard *entry;
	int ret = -FI_EINVAL;

	mrf_lock_held(&lock);
	if (!mrf_monitor_usable() || !mrf_hooks_in_force())
		return -FI_ENOSYS;
	entry = mrf_discard_find(&discards, watch->start, end);
	if (entry) {
		arm_discard_locked(entry);
		return ret;
	}
	enter_watch_locked(watch);
	if (mrf_hooks_quiet(watch->start, end))
		ret = watch_uffd_locked(watch);
	if (ret)
		mrf_monitor_unwatch_locked(watch);
	return ret;
}

/* Unregisters what of [start, end) no watch covers. */
static void release_locked(uintptr_t start, uintptr_t end)
{
	const struct mrf_watch *other;
	uintptr_t next;

	mrf_lock_held(&lock);
	while (start < end) {
		other = first_watch_locked(start, end);
		next = other ? other->start : end;
		if (next > start)
			mrf_uffd_unregister(fd, start, next - start);
		start = other ? end_of(other) : end;
	}
}

void mrf_monitor_unwatch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	if (!mrf_watch_on(watch))
		return;
	leave_locked(watch);
	if (fd >= 0 && mrf_monitor_usable())
		release_locked(watch->start, end_of(watch));
}

/* --- changes ---------------------------------------------------------------------- */

static void drop_watch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	watch->client->hit = true;
	watch->client->drop(watch);
}

static void tell_clients_locked(void)
{
	mrf_lock_held(&lock);
	mrf_list_each (node, &clients) {
		struct mrf_monitor_client *client =
			mrf_list_entry(node, struct mrf_monitor_client, node);

		if (client->hit && client->dropped)
			client->dropped(client->arg);
		client->hit = false;
	}
}

/* A hook calls this in the thread that is about to change the range. */
static void changing(uintptr_t start, uintptr_t end)
{
	struct mrf_watch *watch;

	if (atomic_load_explicit(&holder, memory_order_relaxed) == (uintptr_t)pthread_self() ||
	    !mrf_monitor_usable())
		return;
	mrf_monitor_lock();
	while ((watch = first_watch_locked(start, end))) {
		mrf_monitor_unwatch_locked(watch);
		drop_watch_locked(watch);
	}
	tell_clients_locked();
	mrf_monitor_unlock();
}

/* Unregisters everything from the kernel; the watches stay in the list. */
static void unregister_all_locked(void)
{
	struct mrf_itree_node *node;
	unsigned i;

	mrf_lock_held(&lock);
	for (node = mrf_itree_first(&watches, 0, UINTPTR_MAX); node;
	     node = mrf_itree_next(&watches, node, 0, UINTPTR_MAX)) {
		const struct mrf_watch *watch = mrf_itree_value(node);

		mrf_uffd_unregister(fd, watch->start, watch->len);
	}
	for (i = 0; i < discards.count; i++) {
		struct mrf_discard *entry = &discards.entry[i];

		if (entry->armed)
			mrf_uffd_unregister(fd, entry->start, entry->end - entry->start);
		entry->armed = false;
	}
}

static void drop_all_locked(void)
{
	struct mrf_watch *watch;

	mrf_lock_held(&lock);
	unregister_all_locked();
	while ((watch = first_watch_locked(0, UINTPTR_MAX))) {
		leave_locked(watch);
		drop_watch_locked(watch);
	}
	tell_clients_locked();
}

static void take_in_event_locked(const struct mrf_uffd_event *event)
{
	mrf_lock_held(&lock);
	switch (event->kind) {
	case MRF_UFFD_REMOVE:
		mrf_discard_add(&discards, event->start, event->end, (uint64_t)mrf_now_ms());
		break;
	case MRF_UFFD_UNMAP:
		mrf_discard_unmapped(&discards, event->start, event->end, (uint64_t)mrf_now_ms());
		break;
	case MRF_UFFD_REMAP:
		/* The range that moved is still registered, at its new place. */
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
	atomic_store(&mrf_monitor_learning, true);
	drop_all_locked();
	while (mrf_uffd_read(fd, &event))
		take_in_event_locked(&event);
	atomic_store(&mrf_monitor_learning, false);
	mrf_monitor_unlock();
}

void mrf_monitor_settle(void)
{
	mrf_monitor_lock();
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
 * A child has neither the thread nor clients, and starts from nothing when it opens
 * something. While it has the parent's descriptor, closing that descriptor would wake no
 * thread of the parent.
 */
static void monitor_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	if (atomic_exchange(&owner, 0) && fd >= 0) {
		close(fd);
		close(stop_fd);
	}
	fd = stop_fd = -1;
	trap = 0;
	users = 0;
	admin = fresh;
	mrf_list_init(&clients);
	mrf_itree_forget(&watches);
	memset(&discards, 0, sizeof(discards));
	atomic_store(&listener.armed, 0);
	atomic_store(&mrf_monitor_learning, false);
	mrf_hooks_in_child();
	/* Another thread may have had it at the time of the fork. */
	atomic_store(&lock.state, 0);
	atomic_store(&holder, 0);
}

static void monitor_notice_forks(void)
{
	/* If this fails, everything works as long as the process does not fork. */
	(void)pthread_atfork(NULL, NULL, monitor_in_child);
}

static int start_monitor_thread(void)
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
	void *page = mmap(NULL, mrf_page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	trap = (uintptr_t)page;
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (stop_fd < 0)
		return -errno;
	mappings_max = mrf_maps_limit();
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

/* What FI_MRFAB_MONITOR asks for. */
enum wanted { NONE, HOOKS, BOTH };

static enum wanted wanted_monitor(void)
{
	const char *which = mrf_env_str(MRF_PARAM_MONITOR);

	if (!which || !strcmp(which, "userfaultfd"))
		return BOTH;
	if (!strcmp(which, "memhooks"))
		return HOOKS;
	if (strcmp(which, "none") && !said_unknown) {
		mrf_warn(FI_LOG_MR, 3050,
			 "FI_MRFAB_MONITOR=%s: must be userfaultfd, memhooks or none; "
			 "none is in force",
			 which);
		said_unknown = true;
	}
	return NONE;
}

/* 0, or why not; *what: what cannot be had. */
static int start_parts(enum wanted parts, const char **what)
{
	int ret = mrf_hooks_listen(&listener);

	*what = "the C library's calls cannot be intercepted";
	if (ret || parts == HOOKS)
		return ret;
	*what = "userfaultfd cannot be used";
	ret = open_all();
	return ret ? ret : start_monitor_thread();
}

static void start(void)
{
	enum wanted parts = wanted_monitor();
	const char *what;
	int ret;

	if (parts == NONE)
		return;
	ret = start_parts(parts, &what);
	if (!ret) {
		atomic_store_explicit(&owner, getpid(), memory_order_release);
		return;
	}
	if (!said_why)
		mrf_warn(FI_LOG_MR, 3051,
			 "%s (%s): memory that is not pinned for good is pinned again for "
			 "each remote access",
			 what, strerror(-ret));
	said_why = true;
	close_all();
}

static void stop_thread(void)
{
	uint64_t one = 1;

	/* The thread's own stack may still be registered. */
	mrf_monitor_lock();
	unregister_all_locked();
	mrf_monitor_unlock();
	if (write(stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(thread, NULL);
}

static void stop_monitor(void)
{
	struct mrf_watch *watch;

	if (!mrf_monitor_usable())
		return;
	if (fd >= 0)
		stop_thread();
	mrf_monitor_lock();
	while ((watch = first_watch_locked(0, UINTPTR_MAX)))
		leave_locked(watch);
	atomic_store_explicit(&owner, 0, memory_order_release);
	mrf_monitor_unlock();
	close_all();
}

void mrf_monitor_add(struct mrf_monitor_client *client)
{
	static pthread_once_t forks = PTHREAD_ONCE_INIT;

	pthread_once(&forks, monitor_notice_forks);
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
		stop_monitor();
	pthread_mutex_unlock(&admin);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the monitor learns of changes: by hooks, by userfaultfd, by both (the default), or not at
 * all.
 *
 * Hooks (hooks.c) drop exactly what overlaps the range, before the call; but a direct
 * system call goes around them. userfaultfd is the net for these. It alone is not quite
 * enough: the thread that makes the change goes on the moment its event is read, but other
 * threads do not even wait for that, and may have the address already (BUGS in mrfab(7)).
 * So it is used alone only if the user says so.
 *
 * The range of an event is known only when the event has been read. Pins for peers have to be
 * gone before that, because a peer's access asks nobody here. So for every event all pins for
 * peers are dropped first. Pins that only this process uses can stay: a thread that looks one
 * up also checks mrf_monitor_learning, and waits. So the event is read, and exactly the pins in
 * its range are dropped.
 *
 * userfaultfd reports a discard before the kernel takes the pages away, and nothing reports
 * that it has: such pages are not watched again.
 *
 * One thread per process reads userfaultfd, started with the first client. A forked child
 * starts from nothing.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/env.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/renew.h"
#include "base/thread.h"
#include "monitor/hooks.h"
#include "monitor/imported.h"
#include "monitor/life.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"
#include "monitor/reported.h"

static unsigned users;			/* admin */
static pthread_t thread;		/* admin */
static sem_t last_read;			/* the thread reads no event any more */
static struct fid_mem_monitor *adopted; /* admin */
static bool said_unknown;		/* admin: that FI_MR_CACHE_MONITOR is wrong */
static bool said_why;			/* admin: why there is none */

atomic_bool mrf_monitor_hooked;

/* --- events ------------------------------------------------------------------------- */

/* What was moved stays registered where it is now. */
static void take_in_event_locked(const struct mrf_uffd_event *event)
{
	mrf_monitor_held();
	mrf_monitor_change_locked(event);
	if (event->kind == MRF_UFFD_REMAP)
		mrf_uffd_remove(event->to, event->to + (event->end - event->start));
}

static void handle_events(void)
{
	struct mrf_uffd_event event;

	mrf_monitor_lock();
	atomic_store(&mrf_monitor_learning, true);
	mrf_monitor_lose_locked();
	mrf_monitor_tell_locked();
	while (mrf_uffd_read(&event))
		take_in_event_locked(&event);
	atomic_store(&mrf_monitor_learning, false);
	mrf_monitor_tell_locked();
	mrf_monitor_unlock();
}

static void *monitor_main(void *arg)
{
	mrf_thread_own();
	while (mrf_uffd_wait())
		handle_events();
	sem_post(&last_read);
	return arg;
}

/* --- starting ----------------------------------------------------------------------- */

/*
 * A child has neither the thread nor clients, and starts from nothing when it opens
 * something. While it has the parent's descriptor, closing it would wake no thread of
 * the parent.
 */
static void monitor_in_child(void)
{
	if (mrf_monitor_forget())
		mrf_uffd_end();
	mrf_imported_in_child();
	adopted = NULL;
	users = 0;
}

/* Guards starting and ending the thread, which never takes this lock. */
static struct mrf_static_lock admin = MRF_STATIC_LOCK(monitor_in_child);

static void enter_admin(void)
{
	const char *which = mrf_env_str(MRF_PARAM_MONITOR);

	if (!which || !strcmp(which, "memhooks"))
		mrf_hooks_find();
	mrf_static_take(&admin);
}

static int start_uffd(void)
{
	int ret = mrf_uffd_begin();

	sem_init(&last_read, 0, 0);
	if (!ret)
		ret = mrf_thread_start(&thread, monitor_main, NULL, "mrfab-monitor");
	if (ret)
		mrf_uffd_end();
	return ret;
}

/* The parts that FI_MR_CACHE_MONITOR asks for. */
static struct mrf_monitor_parts wanted_parts(void)
{
	const char *which = mrf_env_str(MRF_PARAM_MONITOR);

	if (adopted && (!which || strcmp(which, "disabled")))
		return (struct mrf_monitor_parts){ .import = true };
	if (!which)
		return (struct mrf_monitor_parts){ .hooks = true, .uffd = true };
	if (!strcmp(which, "userfaultfd"))
		return (struct mrf_monitor_parts){ .uffd = true };
	if (!strcmp(which, "memhooks"))
		return (struct mrf_monitor_parts){ .hooks = true };
	if (strcmp(which, "disabled") && !said_unknown) {
		mrf_warn(
			FI_LOG_MR, 3050,
			"FI_MR_CACHE_MONITOR=%s: the value must be userfaultfd, memhooks or disabled; "
			"disabled is in force",
			which);
		said_unknown = true;
	}
	return (struct mrf_monitor_parts){ .hooks = false };
}

/* On an error *what says which part cannot be used. */
static int start_parts(struct mrf_monitor_parts parts, const char **what)
{
	int ret = parts.hooks ? mrf_monitor_listen() : 0;

	*what = "the memory monitor that was imported does not start";
	if (parts.import)
		return mrf_imported_start();
	*what = "the C library's calls cannot be intercepted";
	if (!ret && !parts.uffd)
		mrf_hooks_keep_heap();
	if (ret || !parts.uffd)
		return ret;
	*what = "userfaultfd cannot be used";
	return start_uffd();
}

static void start_monitor(void)
{
	struct mrf_monitor_parts parts = wanted_parts();
	const char *what;
	int ret;

	if (!parts.hooks && !parts.uffd && !parts.import)
		return;
	ret = start_parts(parts, &what);
	if (!ret) {
		mrf_monitor_start(parts);
		return;
	}
	if (!said_why)
		mrf_warn(FI_LOG_MR, 3051,
			 "%s (%s): memory that is not pinned for good is pinned again for "
			 "each access",
			 what, mrf_limit_text(ret));
	said_why = true;
}

/*
 * Starts the hooks only: copies need no userfaultfd, and no message that there is none. An
 * imported monitor announces no change that base/known.h could wait for.
 */
void mrf_monitor_hook_first(void)
{
	enter_admin();
	if (!atomic_exchange(&mrf_monitor_hooked, true) && wanted_parts().hooks)
		(void)mrf_monitor_listen();
	mrf_static_release(&admin);
}

/*
 * A thread gives its stack back when it ends, and may unmap others' when it is joined. If
 * something of that were still registered, since the kernel did not let it go, an event would
 * wait for this very thread. When the descriptor is closed, none does.
 */
static void stop_thread(void)
{
	mrf_monitor_lock();
	mrf_reported_end_locked();
	mrf_monitor_unlock();
	mrf_uffd_stop();
	while (sem_wait(&last_read))
		;
	mrf_uffd_end();
	pthread_join(thread, NULL);
	sem_destroy(&last_read);
}

static void stop_monitor(void)
{
	if (!mrf_monitor_usable())
		return;
	if (mrf_uffd_begun())
		stop_thread();
	mrf_monitor_stop();
	if (adopted)
		mrf_imported_stop();
}

/* --- clients ------------------------------------------------------------------------ */

void mrf_monitor_add(struct mrf_monitor_client *client)
{
	enter_admin();
	if (!users++)
		start_monitor();
	mrf_monitor_lock();
	mrf_monitor_enter_locked(client);
	mrf_monitor_unlock();
	mrf_static_release(&admin);
}

void mrf_monitor_remove(struct mrf_monitor_client *client)
{
	mrf_static_take(&admin);
	mrf_monitor_lock();
	mrf_monitor_leave_locked(client);
	mrf_monitor_unlock();
	if (!--users)
		stop_monitor();
	mrf_static_release(&admin);
}

/* --- a monitor of the application's own ------------------------------------------------ */

int mrf_monitor_adopt(struct fid_mem_monitor *monitor, struct fi_ops_mem_notify *notify,
		      struct fi_ops *ops)
{
	int ret = 0;

	enter_admin();
	if (adopted) {
		ret = -FI_EALREADY;
	} else if (users) {
		ret = -FI_EBUSY;
	} else {
		monitor->import_ops = notify;
		monitor->fid.ops = ops;
		adopted = monitor;
		mrf_imported_begin(monitor);
	}
	mrf_static_release(&admin);
	return ret;
}

int mrf_monitor_disown(struct fid_mem_monitor *monitor)
{
	int ret = -FI_EINVAL;

	enter_admin();
	if (adopted && adopted == monitor) {
		if (mrf_monitor_usable()) {
			mrf_monitor_drop_all();
			mrf_imported_stop();
		}
		mrf_imported_end();
		adopted = NULL;
		if (users)
			start_monitor();
		ret = 0;
	}
	mrf_static_release(&admin);
	return ret;
}

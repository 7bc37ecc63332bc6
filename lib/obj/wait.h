/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of queues and counters: sources of progress (the endpoints bound to
 * them), which are polled when the application reads, and a wait object.
 *
 * A source belongs to the object that was bound and is linked into any number of waits
 * through one mrf_wait_link each. Locks: mrf_wait.lock (rank WAIT) is held while sources
 * are polled, so a poll callback may take the endpoint's lock and write to CQs and
 * counters. It leaves work that takes time to the finish callback, which is called without
 * this lock, so that it delays no other thread that reads the same queue.
 *
 * Every thread that blocks has a bell of its own (sleeper.h), and the application's file
 * descriptor has another one, which only fi_trywait silences.
 */
#ifndef MRF_OBJ_WAIT_H
#define MRF_OBJ_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <rdma/fi_eq.h>
#include "base/compiler.h"
#include "base/list.h"
#include "base/lock.h"
#include "obj/sleeper.h"

struct mrf_source {
	/* Makes whatever progress is possible without blocking. */
	void (*poll)(struct mrf_source *source);
	/*
	 * Makes fd unreadable until the next event. Events that came before this call may
	 * be missed, so the caller polls once more afterwards. fired: fd may be readable. If not,
	 * a source that is armed already need do nothing.
	 */
	void (*arm)(struct mrf_source *source, bool fired);
	/*
	 * Does the work that poll left undone because it takes time; called without a lock.
	 * NULL: poll never leaves any.
	 */
	void (*finish)(struct mrf_source *source);
	int fd;		  /* readable when there is something to poll, or -1; owned by the source */
	atomic_bool left; /* there is work to finish, and no thread is doing it */
};

struct mrf_wait_link {
	struct mrf_list node; /* in wait->links; guarded by wait->lock */
	struct mrf_source *source;
	struct mrf_wait *_Atomic wait; /* NULL: not linked */
	unsigned inside; /* threads in source->finish through it; guarded by wait->lock */
};

struct mrf_wait {
	enum fi_wait_obj kind; /* NONE, UNSPEC or FD; immutable */
	/*
	 * These three are opened, under lock, when they are first needed; -1 until then.
	 */
	int epoll_fd;	      /* the descriptor that the application may poll */
	int source_fd;	      /* epoll of the sources' fds; inside epoll_fd */
	struct mrf_bell bell; /* inside epoll_fd; rung once the application watches */
	struct mrf_lock lock; /* rank WAIT: guards links, held while polling */
	struct mrf_list links;
	atomic_int waiters;	      /* sleepers, plus 1 if watched; 0: no signal needed */
	atomic_bool watched;	      /* the application has the fd, or called fi_trywait */
	struct mrf_sleepers sleepers; /* threads in mrf_wait_until */
};

/*
 * -FI_ENOSYS (logged) for the kinds of fi_eq(3) other than NONE, UNSPEC and FD,
 * -FI_EINVAL for an unknown kind, or the kernel's error. Opens descriptors for FI_WAIT_FD
 * only: most objects are opened with FI_WAIT_UNSPEC and never waited for, and a program
 * with thousands of counters would run out of descriptors for nothing.
 */
int mrf_wait_init(struct mrf_wait *wait, enum fi_wait_obj kind);
/* No source may be linked and no thread asleep. */
void mrf_wait_fini(struct mrf_wait *wait);
/* -FI_EBUSY (logged): threads are blocked on it, and closing would strand them. */
int mrf_wait_busy(struct mrf_wait *wait);
/* Logs the line of mrf_wait_busy and returns its -FI_EBUSY. */
int mrf_wait_refuse_close(unsigned threads);

/*
 * Links a source, which may be linked twice. If the descriptors are already open, it may
 * fail with -FI_ENOMEM or another error of epoll_ctl(2).
 */
int mrf_wait_link(struct mrf_wait *wait, struct mrf_wait_link *link, struct mrf_source *source);
/*
 * When this returns, no thread is inside source->poll or source->finish through this
 * link. Harmless when not linked.
 */
void mrf_wait_unlink(struct mrf_wait_link *link);

/*
 * The source of this link has work left, and the thread that would finish it is busy: wakes the
 * threads that sleep, so that they poll and finish. Any lock held; harmless when not linked.
 */
void mrf_wait_call(struct mrf_wait_link *link);

/* Does a thread sleep that polls the source of this link? Any lock held; harmless when not linked. */
bool mrf_wait_asleep(const struct mrf_wait_link *link);

/* Finishes the work that the sources have left. The caller holds no lock. */
void mrf_wait_finish(struct mrf_wait *wait);

/*
 * Polls every source once, and finishes the work that polling leaves. The caller holds no lock.
 * Inline, because every read of an empty queue calls it.
 */
static inline void mrf_wait_poll(struct mrf_wait *wait)
{
	bool left = false;

	mrf_lock_take(&wait->lock);
	mrf_list_each (node, &wait->links) {
		struct mrf_wait_link *link = mrf_list_entry(node, struct mrf_wait_link, node);

		link->source->poll(link->source);
		left |= atomic_load_explicit(&link->source->left, memory_order_relaxed);
	}
	mrf_lock_release(&wait->lock);
	if (mrf_unlikely(left))
		mrf_wait_finish(wait);
}

/* As mrf_wait_poll, for a call that may block: the thread cannot be cancelled meanwhile. */
void mrf_wait_poll_first(struct mrf_wait *wait);

/*
 * Wakes all threads that are blocked on this wait; cheap if there are none. Any thread,
 * any lock held.
 */
void mrf_wait_signal(struct mrf_wait *wait);
/* Would mrf_wait_signal do anything? */
static inline bool mrf_wait_heard(struct mrf_wait *wait)
{
	return atomic_load(&wait->waiters);
}

/*
 * Blocks until attempt(arg) returns something other than -FI_EAGAIN and returns that;
 * -FI_ETIMEDOUT after timeout ms (negative: never), -FI_EINTR when a signal handler ran.
 * Before each attempt the caller is counted as a waiter, and the sources are armed and
 * then polled, so that any event that attempt does not see yet wakes the thread. The
 * caller holds no lock. Fails (logged) if the kernel has no descriptor left to wait with.
 * The thread can be cancelled (pthread_cancel) only where it sleeps, because elsewhere it
 * may hold a lock; it is then no longer counted as a waiter.
 */
ssize_t mrf_wait_until(struct mrf_wait *wait, int timeout, ssize_t (*attempt)(void *arg),
		       void *arg);

/*
 * fi_trywait: from now on every event makes epoll_fd readable; the caller then checks
 * whether something is there already. -FI_EINVAL (logged) with kind NONE.
 */
int mrf_wait_try(struct mrf_wait *wait);

/* FI_GETWAIT and FI_GETWAITOBJ of fi_control; any other command as mrf_no_control. */
int mrf_wait_control(struct mrf_wait *wait, struct fid *fid, int command, void *arg);

/*
 * -FI_EINVAL (logged): threads may not block on this object, because fi_cq(3), fi_cntr(3) and
 * fi_eq(3) forbid blocking on FI_WAIT_NONE.
 */
int mrf_wait_may_block(const struct mrf_wait *wait, const char *call);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers "Did the pages behind these addresses change?" There is one monitor per
 * process. It learns of changes in two ways:
 *
 * Hooks in the C library (monitor/hooks.h) report a change and its range before it is
 * made. Everything watched in that range is dropped before the hooked call goes on, and
 * nothing there can be watched until that call has returned.
 *
 * userfaultfd, in write-protect mode without protecting anything, reports changes that
 * bypass the C library, for private anonymous memory: munmap, mappings put over others,
 * mremap, MADV_DONTNEED and MADV_FREE. By then the change has been made, and the thread
 * that made it sleeps in the kernel until the monitor reads the event. It goes on at that
 * moment, so everything that has to be gone before it uses the new pages must be gone
 * before the event is read, when only its existence is known. So for every event, every
 * client first drops everything that it watches, and only then is the event read. Other
 * threads do not wait: one that maps memory there again at once may be too early.
 * Therefore this way alone is not enough.
 *
 * One lock (rank PIN) per process guards all clients' pins. A thread must not allocate,
 * free or unmap memory while it holds the lock: that may raise an event which only the
 * monitor can read, and the monitor needs the lock. During a drop even free() is
 * forbidden, though nothing is watched any more: the thread that waits may hold the
 * allocator's own locks. A thread that holds the lock has all signals blocked.
 *
 * userfaultfd reports a discard (MADV_DONTNEED, MADV_FREE) before the pages go, and
 * nothing reports when they have gone. Such a range is not watched again until it has
 * been unmapped, long after the discard.
 *
 * The first client starts the monitor, and removing the last one stops it; the hooks
 * stay.
 */
#ifndef MRF_MONITOR_MONITOR_H
#define MRF_MONITOR_MONITOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/itree.h"
#include "base/list.h"

struct mrf_monitor_client;

/*
 * A range of whole pages that can be watched; the client owns the structure, and sets
 * start and len while it is not watched.
 */
struct mrf_watch {
	struct mrf_itree_node *node; /* private */
	uintptr_t start;
	size_t len;
	struct mrf_monitor_client *client;
};

/*
 * The calls come with the lock held, from the monitor's thread or any thread that changes
 * its memory.
 */
struct mrf_monitor_client {
	struct mrf_list node;
	/*
	 * Drops everything that relies on this watch, which has ended. Must not allocate
	 * or free.
	 */
	void (*drop)(struct mrf_watch *watch);
	/*
	 * Called when everything concerned by a change is dropped, before the change goes
	 * on; may be NULL.
	 */
	void (*dropped)(void *arg);
	void *arg;
	/*
	 * What relies on this client's watches is used by this process alone, which looks
	 * at mrf_monitor_settled first: drop comes for exactly what an event is about, when
	 * it has been read. Otherwise drop comes before that, for all that it may be about.
	 */
	bool local;
	bool hit; /* used by the monitor */
};

/*
 * False: changes are not reported (no client yet, FI_MRFAB_MONITOR=none, hooks or
 * userfaultfd not available, or this is a forked child), and mrf_monitor_watch_locked
 * always fails.
 */
bool mrf_monitor_usable(void);

/*
 * May a process with this many mappings have more memory watched? userfaultfd splits a
 * mapping at each edge of a watched range, and the number of mappings is limited
 * (vm.max_map_count); the second half of the limit is left to the application. The lock is
 * not held.
 */
bool mrf_monitor_has_room(unsigned mappings);

void mrf_monitor_lock(void);
void mrf_monitor_unlock(void);
/* As mrf_lock_held: aborts in builds with --enable-lockrank unless the lock is held. */
#ifdef MRF_LOCKRANK
void mrf_monitor_held(void);
#else
#define mrf_monitor_held() ((void)0)
#endif

/*
 * Makes a watch, which is not watched yet, and ends it, while it is not watched. No lock
 * is held. -FI_ENOMEM. mrf_watch_fini does no harm to a watch that is all 0, and what it
 * gives back does not go to the allocator.
 */
int mrf_watch_init(struct mrf_watch *watch, struct mrf_monitor_client *client);
void mrf_watch_fini(struct mrf_watch *watch);

/* Is it watched? The lock is held. */
static inline bool mrf_watch_on(const struct mrf_watch *watch)
{
	return watch->node && mrf_itree_linked(watch->node);
}

/*
 * A local client's thread takes hold of what it found by a watched range, and then looks
 * at mrf_monitor_settled. True: all changes of mappings that were complete before this
 * call have had their effect on what local clients watch. False: the monitor's thread is
 * just learning what has changed; the thread lets go, calls mrf_monitor_settle without
 * locks of rank PIN, which waits for that, and looks for the range again. Hooks need none
 * of this: the drop comes before the change.
 */
extern atomic_bool mrf_monitor_learning;

static inline bool mrf_monitor_settled(void)
{
	return !atomic_load(&mrf_monitor_learning);
}

void mrf_monitor_settle(void);

/* The lock is not held. A client has to end its watches before it is removed. */
void mrf_monitor_add(struct mrf_monitor_client *client);
void mrf_monitor_remove(struct mrf_monitor_client *client);

/*
 * The lock is held. start and len are whole pages that lie inside one mapping. On failure
 * the range is not watched: -FI_ENOSYS (no monitor, or the hooks are gone), -FI_EINVAL
 * (memory that cannot be watched, was discarded, or is being changed), -FI_EBUSY (another
 * userfaultfd has it), -FI_EAGAIN (not, or not any more, inside one mapping: look again).
 */
int mrf_monitor_watch_locked(struct mrf_watch *watch);
/*
 * The lock is held. Pages that another watch covers stay watched. Harmless if the range is
 * not watched.
 */
void mrf_monitor_unwatch_locked(struct mrf_watch *watch);

#endif

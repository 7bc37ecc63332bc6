/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers "Did the pages behind these addresses change?" There is one monitor per
 * process. It learns of changes in two ways; FI_MR_CACHE_MONITOR may choose one of them,
 * or none (monitor/life.c):
 *
 * Hooks in the C library (monitor/hooks.h) report a change and its range before it is
 * made. Everything watched in that range is dropped before the hooked call goes on, and
 * nothing there can be watched until that call has returned.
 *
 * userfaultfd, in write-protect mode without protecting anything, reports changes that
 * bypass the C library, for private anonymous memory: munmap, mappings put over others,
 * mremap, MADV_DONTNEED and MADV_FREE. By then the change has been made, and the thread
 * that made it sleeps in the kernel until the monitor reads the event. It goes on at that
 * moment, so what peers can use has to be gone before the event is read, when only its
 * existence is known: everything goes that is watched for peers. What
 * only this process uses (struct mrf_monitor_client.local) is looked up by a thread that
 * can be made to wait, so exactly what the event says is dropped. Other threads do not
 * wait: one that maps memory there again at once may be too early. Therefore this way
 * alone is not enough.
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
 * What has been registered with userfaultfd for a watch stays registered when it ends
 * (monitor/ground.h), until its memory changes, so that the next watch there costs little.
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
#include "base/compiler.h"
#include "base/itree.h"
#include "base/list.h"
#include "monitor/imported.h"
#include "monitor/life.h"
#include "monitor/state.h"

struct mrf_monitor_client;

/*
 * A range of whole pages that can be watched; the client owns the structure, and sets
 * start and len while it is not watched.
 */
struct mrf_watch {
	struct mrf_itree_node *node; /* private */
	struct mrf_list of_peers;    /* private */
	uintptr_t start;
	size_t len;
	struct mrf_monitor_client *client;
	struct mrf_subscription sub; /* private */
	bool alone;		     /* private: registered for itself, not in ground */
	bool loose;		     /* private: hooks do not find it by ground */
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
	 * it has been read. Otherwise drop comes before that, for all that is watched.
	 */
	bool local;
	bool hit; /* used by the monitor */
};

/*
 * May more memory be watched? userfaultfd splits a mapping at each edge of a watched range,
 * and the number of mappings is limited (vm.max_map_count); the second half of the limit
 * is left to the application. Mappings are counted only when much more is watched than at
 * the last count. The lock is not held.
 */
bool mrf_monitor_has_room(void);

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
 * Is the watched range still what it was, as far as a monitor knows that was imported? A
 * local client asks this of what it found, too. No lock is held.
 */
static inline bool mrf_watch_valid(const struct mrf_watch *watch)
{
	return mrf_likely(!mrf_imported()) || mrf_subscription_valid(&watch->sub);
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

/*
 * The lock is held. start and len are whole pages of private anonymous memory without a
 * hole, which userfaultfd proves, and hooks alone leave to mrf_monitor_sure. On failure
 * the range is not watched: -FI_ENOSYS (no monitor, or the hooks are gone), -FI_EINVAL
 * (memory of another kind, was discarded, or is being changed), -FI_EBUSY (another
 * userfaultfd has it), -FI_EAGAIN (there is a hole or the end of a mapping: look again, or
 * at less).
 */
int mrf_monitor_watch_locked(struct mrf_watch *watch);
/*
 * Would watching it cost no registration, for it is in ground, and hooks see when its rights
 * change? Then it lies in one chunk and one mapping, which has been watched before, and needs
 * no room. The lock is held.
 */
bool mrf_monitor_stands_locked(const struct mrf_watch *watch);
/*
 * Does watching prove by itself (by userfaultfd) that memory is private and anonymous, and
 * that what lies in one aligned part of MRF_MONITOR_PART bytes lies in one mapping?
 */
bool mrf_monitor_proves(void);
#define MRF_MONITOR_PART ((uintptr_t)2 << 20)
/*
 * Is what is watched private anonymous memory? Memory of other kinds changes without a
 * call that hooks hear of, and pinning it is of no use until this was asked. A monitor
 * that was imported is told to watch it here. The lock is not held.
 */
bool mrf_monitor_sure(struct mrf_watch *watch);
/*
 * The application's own monitor says that [start, end) changes: everything watched there
 * is dropped. Without effect if none is imported. The lock is not held.
 */
void mrf_monitor_changing(uintptr_t start, uintptr_t end);
/*
 * The lock is held. Pages that another watch covers stay watched. Harmless if the range is
 * not watched.
 */
void mrf_monitor_unwatch_locked(struct mrf_watch *watch);

/* --- for monitor/life.c ------------------------------------------------------------- */

struct mrf_uffd_event;

/* From now on ranges can be watched in this process. The lock is not held. */
void mrf_monitor_start(struct mrf_monitor_parts parts);
/* Ends all watches without a word to their clients; no more can begin. The lock is not held. */
void mrf_monitor_stop(void);
/* Forgets everything, in a forked child. True: the parent had a monitor. */
bool mrf_monitor_forget(void);

void mrf_monitor_enter_locked(struct mrf_monitor_client *client);
void mrf_monitor_leave_locked(struct mrf_monitor_client *client);
/* Adds the listener to the hooks: mrf_hooks_listen. */
int mrf_monitor_listen(void);

/* Ends what is watched for clients that are not local: an event is to be read. */
void mrf_monitor_lose_locked(void);
/* Ends what the event is about, and remembers what was discarded. */
void mrf_monitor_change_locked(const struct mrf_uffd_event *event);
/* Tells the clients of which something was dropped. */
void mrf_monitor_tell_locked(void);
/* As if everything changed, for good: no more can be watched. The lock is not held. */
void mrf_monitor_drop_all(void);

#endif

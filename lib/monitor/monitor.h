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
 * userfaultfd, in write-protect mode without protecting anything, reports changes that bypass
 * the C library, for private anonymous memory: munmap, mappings put over others, mremap,
 * MADV_DONTNEED and MADV_FREE. By then the change has been made, and the thread that made it
 * sleeps in the kernel until the monitor reads the event. It goes on at that moment, so
 * everything that peers can use has to be gone before the event is read, when only its
 * existence is known: the monitor drops all watches for peers. A thread that looks up something
 * that only this process uses (struct mrf_monitor_client.local) can be made to wait, so there
 * exactly the range of the event is dropped. Other threads do not wait: one that maps memory
 * there again at once may be too early. Therefore userfaultfd alone is not enough.
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
 * Memory that was registered with userfaultfd for a watch stays registered when the watch ends
 * (monitor/ground.h), until it changes, so that the next watch there costs little.
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
#include "monitor/monitor_state.h"

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
	 * Called when everything that a change concerns was dropped, before the change goes on;
	 * may be NULL.
	 */
	void (*dropped)(void *arg);
	void *arg;
	/*
	 * Only this process uses what relies on this client's watches, and it checks
	 * mrf_monitor_settled first. So drop is called for exactly the range of an event, after
	 * it was read. For other clients drop is called before that, for all watches.
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
 * Is the watched range still what it was, as far as an imported monitor knows? A local client
 * checks this, too, for everything that it finds. No lock is held.
 */
static inline bool mrf_watch_valid(const struct mrf_watch *watch)
{
	return mrf_likely(!mrf_imported()) || mrf_subscription_valid(&watch->sub);
}

/*
 * A local client's thread first takes hold of what it found by a watched range, and then calls
 * mrf_monitor_settled. True: all changes of mappings that were complete before this call have
 * had their effect on local clients' watches. False: the monitor's thread is reading what has
 * changed; the client's thread lets go, waits for that in mrf_monitor_settle, without locks of
 * rank PIN, and looks for the range again. Hooks need none of this: they drop before the
 * change.
 */
extern atomic_bool mrf_monitor_learning;

static inline bool mrf_monitor_settled(void)
{
	return !atomic_load(&mrf_monitor_learning);
}

void mrf_monitor_settle(void);

/*
 * The lock is held. start and len are whole pages of private anonymous memory without a hole,
 * which userfaultfd proves, and hooks alone leave to mrf_monitor_sure. On failure the range is
 * not watched: -FI_ENOSYS (there is no monitor, or the hooks are gone), -FI_EINVAL (the memory
 * is of another kind, was discarded, or is being changed), -FI_EBUSY (another userfaultfd has
 * it), -FI_EAGAIN (the range has a hole or the end of a mapping: look again, or watch less).
 */
int mrf_monitor_watch_locked(struct mrf_watch *watch);
/*
 * Is the range in ground, and do hooks see when its rights change? Then watching it costs no
 * registration and needs no room: it lies in one chunk and one mapping, which has been watched
 * before. The lock is held.
 */
bool mrf_monitor_stands_locked(const struct mrf_watch *watch);
/*
 * Does watching prove by itself (by userfaultfd) that memory is private and anonymous, and
 * that what lies in one aligned part of MRF_MONITOR_PART bytes lies in one mapping?
 */
bool mrf_monitor_proves(void);
#define MRF_MONITOR_PART ((uintptr_t)2 << 20)
/*
 * Is the watched range private anonymous memory? To be asked before pinning it, because memory
 * of other kinds changes without a call that hooks see. This also has an imported monitor watch
 * the range. The lock is not held.
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
/* Ends all watches without telling their clients; no more can begin. The lock is not held. */
void mrf_monitor_stop(void);
/* Forgets everything, in a forked child. True: the parent had a monitor. */
bool mrf_monitor_forget(void);

void mrf_monitor_enter_locked(struct mrf_monitor_client *client);
void mrf_monitor_leave_locked(struct mrf_monitor_client *client);
/* Adds the listener to the hooks: mrf_hooks_listen. */
int mrf_monitor_listen(void);

/* Ends all watches whose clients are not local, because an event is about to be read. */
void mrf_monitor_lose_locked(void);
/* Ends the watches in the range of the event, and remembers discards. */
void mrf_monitor_change_locked(const struct mrf_uffd_event *event);
/* Calls dropped of the clients whose watches were dropped. */
void mrf_monitor_tell_locked(void);
/* Drops all watches as if everything changed; no more can begin. The lock is not held. */
void mrf_monitor_drop_all(void);

#endif

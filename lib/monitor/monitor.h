/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "Did the pages behind these addresses change?" One monitor per process. It hears of a
 * change in two ways:
 *
 * Hooks in the C library (monitor/hooks.h) call before the change is made, and say where.
 * What is watched there is dropped before the call goes on, and nothing there can be
 * watched until it has returned.
 *
 * userfaultfd, in write-protect mode without protecting anything, tells of what goes around
 * the C library: of munmap, of mappings put over others, of mremap and of MADV_DONTNEED
 * and MADV_FREE, for private anonymous memory. The change is made by then, and the thread
 * that made it sleeps in the kernel until the monitor has read the event, and goes on the
 * moment it has: whatever is to be gone before it uses the new pages has to be gone before
 * the event is read, when nothing but its existence is known. So every event makes every
 * client drop all that it watches, and only then it is read. Other threads do not wait: one
 * that maps there again at once may be early. Therefore this way alone is not enough.
 *
 * The lock (rank PIN) is one for the process and guards all clients' pins. Nobody may
 * allocate, free or unmap memory while holding it: that may raise an event, which only
 * the monitor can take, who needs the lock. While dropping not even free() is harmless,
 * though nothing is watched any more: the thread that waits may hold the allocator's own
 * locks. Whoever holds the lock has all signals blocked.
 *
 * A discard (MADV_DONTNEED, MADV_FREE) that userfaultfd tells of is told before the pages
 * go, and nothing tells when they have gone. Such a range is not watched again, until it was
 * unmapped much later.
 *
 * The first client starts the monitor, the last one to go ends it; the hooks stay.
 */
#ifndef MRF_MONITOR_MONITOR_H
#define MRF_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"

struct mrf_monitor_client;

/* A watched range of whole pages; memory of the client's. */
struct mrf_watch {
	struct mrf_list node; /* init'ed by the client; empty: not watched */
	uintptr_t start;
	size_t len;
	struct mrf_monitor_client *client;
};

/* All but arg: with the lock held, by whatever thread changes its memory or the monitor's. */
struct mrf_monitor_client {
	struct mrf_list node;
	/* Drop what leans on this one, which is not watched any more. No allocating, no freeing. */
	void (*drop)(struct mrf_watch *watch);
	/* Called when all of a change is dropped, before it goes on; may be NULL. */
	void (*dropped)(void *arg);
	void *arg;
	bool hit; /* the monitor's */
};

/*
 * False: nobody tells of changes (no client yet, FI_MRFAB_MONITOR=none, hooks or
 * userfaultfd cannot be had, or this is a forked child): mrf_monitor_watch always fails.
 */
bool mrf_monitor_usable(void);

/*
 * May a process of so many mappings have more watched? userfaultfd parts a mapping at each edge of
 * what it watches, and their number is limited (vm.max_map_count): beyond half of it the rest is
 * left to the application. Lock not held.
 */
bool mrf_monitor_has_room(unsigned mappings);

void mrf_monitor_lock(void);
void mrf_monitor_unlock(void);

/* Both without the lock. A client that goes must have ended its watches. */
void mrf_monitor_add(struct mrf_monitor_client *client);
void mrf_monitor_remove(struct mrf_monitor_client *client);

/*
 * Lock held. start and len are whole pages that lie inside one mapping. Not watched when
 * it fails: -FI_ENOSYS (no monitor, or the hooks are gone), -FI_EINVAL (memory of a kind that
 * cannot be watched, that was discarded, or that is being changed), -FI_EBUSY (another userfaultfd has it), -FI_EAGAIN (it is not,
 * or not any more, inside one mapping: look again).
 */
int mrf_monitor_watch(struct mrf_watch *watch);
/* Lock held. Pages that another watch covers stay watched. Harmless when not watched. */
void mrf_monitor_unwatch(struct mrf_watch *watch);

#endif

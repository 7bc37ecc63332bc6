/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "Did the pages behind these addresses change?" One monitor per process: userfaultfd, in
 * write-protect mode without protecting anything, tells of munmap, of mappings put over
 * others, of mremap and of MADV_DONTNEED and MADV_FREE, for private anonymous memory.
 *
 * The thread that changes a mapping sleeps in the kernel until the monitor has read the
 * event, and goes on the moment it has: whatever is to be gone before the new pages
 * are used has to be gone before the event is read, when nothing but its existence is
 * known. So every event makes every client drop all that it watches, and only then it is
 * read.
 *
 * The lock (rank PIN) is one for the process and guards all clients' pins. Nobody may
 * allocate, free or unmap memory while holding it: that may raise an event, which only
 * the monitor can take, who needs the lock. While dropping not even free() is harmless,
 * though nothing is watched any more: the thread that sleeps may hold the allocator's own
 * locks.
 *
 * A discard (MADV_DONTNEED, MADV_FREE) is told before the pages go, and nothing tells
 * when they have gone. Such a range is not watched again, until it was unmapped much
 * later.
 *
 * The first client starts the monitor's thread, the last one to go ends it.
 */
#ifndef MRF_MONITOR_MONITOR_H
#define MRF_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"

/* A watched range of whole pages; memory of the client's. */
struct mrf_watch {
	struct mrf_list node; /* init'ed by the client; empty: not watched */
	uintptr_t start;
	size_t len;
};

/* All but arg: with the lock held, by the monitor's thread. */
struct mrf_monitor_client {
	struct mrf_list node;
	/* Drop everything; nothing is watched any more. Must not allocate or free. */
	void (*drop)(void *arg);
	/* Called when all clients have dropped, before the event is read; may be NULL. */
	void (*dropped)(void *arg);
	void *arg;
};

/*
 * False: nobody tells of changes (no client yet, FI_MRFAB_MONITOR=none, the kernel does
 * not permit it, or this is a forked child): mrf_monitor_watch always fails.
 */
bool mrf_monitor_usable(void);

void mrf_monitor_lock(void);
void mrf_monitor_unlock(void);

/* Both without the lock. A client that goes must have ended its watches. */
void mrf_monitor_add(struct mrf_monitor_client *client);
void mrf_monitor_remove(struct mrf_monitor_client *client);

/*
 * Lock held. start and len are whole pages that lie inside one mapping. Not watched when
 * it fails: -FI_ENOSYS (no monitor), -FI_EINVAL (memory of a kind that cannot be watched,
 * or that was discarded), -FI_EBUSY (another userfaultfd has it), -FI_EAGAIN (it is not,
 * or not any more, inside one mapping: look again).
 */
int mrf_monitor_watch(struct mrf_watch *watch);
/* Lock held. Pages that another watch covers stay watched. Harmless when not watched. */
void mrf_monitor_unwatch(struct mrf_watch *watch);

#endif

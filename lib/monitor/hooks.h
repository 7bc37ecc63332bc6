/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notification of changes of mappings before they are made: munmap, mmap over an existing
 * mapping, mremap, madvise that takes pages away, brk, and shmat over an existing
 * mapping. All callers are covered, including the C library itself (free, realloc,
 * malloc_trim), but not direct system calls that bypass the C library.
 *
 * A hooked call announces its range in a table, makes all listeners drop what they have
 * there, makes the change and takes the announcement back. So a listener that first arms
 * itself and then finds no announcement of a range (mrf_hooks_quiet) will be called for
 * every later change of that range.
 *
 * The calls come from anywhere: with the allocator's locks held, from signal handlers,
 * from a child of fork or vfork, from under any lock of this library. A listener takes
 * only locks that no thread holds while it allocates, frees or maps.
 */
#ifndef MRF_MONITOR_HOOKS_H
#define MRF_MONITOR_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Allocated statically; a listener is never removed from its process. */
struct mrf_hooks_listener {
	atomic_uint armed; /* not 0: there may be something to drop */
	/* The pages of [start, end) are about to change. May not allocate, free or map.
	 */
	void (*changing)(uintptr_t start, uintptr_t end);
};

/* The most listeners that a process may have. */
#define MRF_HOOKS_LISTENERS 4

/*
 * Installs the hooks, at the first call in a process, and adds the listener. Both stay
 * until the process ends. Returns 0, or the reason why changes cannot be reported:
 * -FI_ENOSYS (not an x86-64 machine, or Valgrind or ThreadSanitizer), -FI_EOPNOTSUPP (the
 * C library's code has an unknown form, or calls do not reach it), or the error of a
 * system call. Several threads may call.
 */
int mrf_hooks_listen(struct mrf_hooks_listener *listener);

/* Are the hooks installed, and not replaced by others? Cheap. */
bool mrf_hooks_in_force(void);

/*
 * True: no change of [start, end) is under way that may have missed that the listener is
 * armed.
 */
bool mrf_hooks_quiet(uintptr_t start, uintptr_t end);

/*
 * Called in a forked child: forgets announcements, because the parent's other threads do
 * not make their changes here.
 */
void mrf_hooks_in_child(void);

#endif

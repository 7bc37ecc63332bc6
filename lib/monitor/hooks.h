/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hearing of a change of mappings before it is made: munmap, mmap over something, mremap,
 * madvise that takes pages away, brk and shmat over something, whoever calls them, the C
 * library included (free, realloc, malloc_trim). What goes around the C library, a direct
 * system call, is not heard of.
 *
 * A call announces its range in a table, has all listeners drop what they have there,
 * makes the change and takes the announcement back. So a listener that first arms itself
 * and then finds no announcement of a range (mrf_hooks_quiet) will be called for every
 * change of it that is made from now on.
 *
 * The calls come from anywhere: with the allocator's locks held, from signal handlers,
 * from a child of fork or vfork, from under any lock of this library. A listener takes
 * only locks that nobody holds while he allocates, frees or maps.
 */
#ifndef MRF_MONITOR_HOOKS_H
#define MRF_MONITOR_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Static; those of a process are never taken away again. */
struct mrf_hooks_listener {
	atomic_uint armed; /* not 0: has something that may have to be dropped */
	/* The pages of [start, end) are about to change. May not allocate, free or map.
	 */
	void (*changing)(uintptr_t start, uintptr_t end);
};

/* So many different listeners there may be. */
#define MRF_HOOKS_LISTENERS 4

/*
 * Puts the hooks in, the first time in a process, and enters the listener. They stay
 * until the process ends. 0; or why changes are not heard of: -FI_ENOSYS (another machine
 * than x86-64, Valgrind or ThreadSanitizer), -FI_EOPNOTSUPP (the C library's code is not
 * of a known form, or calls do not come there), or the error of a system call. Several
 * threads may call.
 */
int mrf_hooks_listen(struct mrf_hooks_listener *listener);

/* Are they in, and has nobody put others in their place? Cheap. */
bool mrf_hooks_in_force(void);

/* Is no change of [start, end) under way that may not have seen the listener armed? */
bool mrf_hooks_quiet(uintptr_t start, uintptr_t end);

/* In a forked child: what other threads of the parent had announced will not be done
 * here. */
void mrf_hooks_in_child(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notification of changes of mappings before they are made, by interception at the level
 * of ELF symbols: the slots through which the program's objects call functions of the C
 * library lead here (monitor/slots.h). No code is changed.
 *
 * Seen, from the executable, its libraries, objects loaded later by dlopen, and the C
 * library's own calls that go through such slots (free and realloc in getline, for
 * example):
 * - munmap, mmap over an existing mapping, mremap, madvise and process_madvise that take
 *   pages away, remap_file_pages, brk and sbrk downwards, shmat over an existing mapping,
 *   dlclose (the segments of all libraries); not shmdt, which takes nothing but shared
 *   memory, and that is not watched;
 * - mprotect and pkey_mprotect: rights that were checked may no longer hold;
 * - free, realloc and reallocarray of a block that is a mapping of its own, and
 *   malloc_trim, if the C library's allocator is in use; the calls above, if another
 *   allocator makes them;
 * - free and realloc that shrink the heap: reported as soon as they are done.
 *
 * Not seen, so that userfaultfd has to report them:
 * - direct system calls, and what the C library does inside itself: stacks of threads
 *   that end, heaps of malloc's arenas but the first, the heap's end before it has moved
 *   (mrf_hooks_keep_heap), buffers of stdio that are mappings, posix_spawn;
 * - calls by pointers that were taken before the hooks were there, or by dlsym;
 * - statically linked programs, objects of other namespaces (dlmopen), objects that define
 *   the function themselves, slots that another library has changed;
 * - an object that is being loaded, until dlopen returns: its constructors; and until
 *   somebody asks for a symbol of it or memory is watched, where a name without a slash was
 *   loaded while an object of the program has a search path of its own.
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

#include <stdbool.h>
#include <stdint.h>
#include "base/known.h"
#include "monitor/change.h"

/*
 * Installs the hooks, at the first call in a process, and adds the listener. Both stay until
 * the process ends. Returns 0, or the reason why changes cannot be reported: -FI_ENOSYS
 * (Valgrind or ThreadSanitizer), -FI_EOPNOTSUPP (a call did not reach its hook, as in a
 * statically linked program or on a machine other than 64-bit x86 and ARM), -FI_ENOSPC (too
 * many listeners). Several threads may call. No lock is held.
 */
int mrf_hooks_listen(struct mrf_hooks_listener *listener);

/*
 * Asks the loader for the functions that are to be hooked. A thread that runs the constructors
 * of an object which is being loaded holds the loader's lock, and may need any lock of the
 * library's. So this is called before taking a lock under which mrf_hooks_listen is called.
 * Cheap after the first time.
 */
void mrf_hooks_find(void);

/* Are the hooks installed, and not replaced by others? Cheap. */
bool mrf_hooks_in_force(void);

/*
 * Hooks the objects that were loaded in ways that the hooks do not see. It is called before
 * something is watched, without locks, because it takes the lock of the loader's list. It costs
 * a call of dl_iterate_phdr(3) if nothing was loaded.
 */
void mrf_hooks_refresh(void);

/* True: no change of [start, end) is under way that may have found the listener unarmed. */
bool mrf_hooks_quiet(uintptr_t start, uintptr_t end);

/*
 * For hooks without userfaultfd: has the C library's allocator keep free memory at the end of
 * its heaps (mallopt, M_TRIM_THRESHOLD), because they shrink by calls inside the C library.
 * Holds until the process ends.
 */
void mrf_hooks_keep_heap(void);

/*
 * Called in a forked child: forgets announcements, because the parent's other threads do
 * not make their changes here.
 */
void mrf_hooks_in_child(void);

#endif

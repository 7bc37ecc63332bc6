/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detects forked children. A forked child shares the kernel's objects and the rings of
 * their queues with its parent: a call in the child would close the parent's regions or
 * take its completions, and the kernel accepts no work request from the child anyway. So
 * every object records which process opened it, and every call checks that it runs in
 * that process: a load, a comparison and a branch that is never taken.
 *
 * Any thread; no lock.
 */
#ifndef MRF_BASE_FORK_H
#define MRF_BASE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* On a page of its own, because the kernel zeroes that page in a child. */
struct mrf_fork_page {
	_Alignas(4096) _Atomic uint64_t word; /* 0: nothing was opened since the fork */
};
/* Hidden, because otherwise every access would go through the global offset table. */
extern __attribute__((visibility("hidden"))) struct mrf_fork_page mrf_fork_page;

/*
 * The number of this process, to record in objects that it opens: never 0, and never the
 * number of an ancestor.
 */
uint64_t mrf_fork_here(void);

/* True if this process opened the object; owner: mrf_fork_here at that time. */
static inline bool mrf_fork_ours(uint64_t owner)
{
	return atomic_load_explicit(&mrf_fork_page.word, memory_order_relaxed) == owner;
}

/* The process that has this number, for messages. */
static inline unsigned mrf_fork_pid(uint64_t owner)
{
	return (unsigned)owner;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex for short sections that are entered so often that the instructions of
 * pthread_mutex_lock itself count. Free: one compare-and-swap to take it, one exchange
 * to release it, no call. Taken: the thread sleeps in the kernel. Not recursive, no
 * condition variables; otherwise as mrf_lock, the rank included. Nothing can fail.
 */
#ifndef MRF_BASE_QUICK_H
#define MRF_BASE_QUICK_H

#include <stdatomic.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/lock.h"

#ifdef MRF_LOCKRANK

struct mrf_quick {
	struct mrf_lock ranked;
};

static inline void mrf_quick_init(struct mrf_quick *quick, enum mrf_lock_rank rank)
{
	mrf_lock_init(&quick->ranked, rank);
}

static inline void mrf_quick_fini(struct mrf_quick *quick)
{
	mrf_lock_fini(&quick->ranked);
}

static inline void mrf_quick_take(struct mrf_quick *quick)
{
	mrf_lock_take(&quick->ranked);
}

static inline void mrf_quick_release(struct mrf_quick *quick)
{
	mrf_lock_release(&quick->ranked);
}

#else

struct mrf_quick {
	_Atomic uint32_t word; /* 0: free; 1: taken; 2: taken, and somebody may sleep */
};

/* The slow halves: sleep until it is taken for the caller; wake one who sleeps. */
void mrf_quick_wait(struct mrf_quick *quick);
void mrf_quick_wake(struct mrf_quick *quick);

static inline void mrf_quick_init(struct mrf_quick *quick, enum mrf_lock_rank rank)
{
	(void)rank;
	atomic_init(&quick->word, 0);
}

static inline void mrf_quick_fini(struct mrf_quick *quick)
{
	(void)quick;
}

static inline void mrf_quick_take(struct mrf_quick *quick)
{
	uint32_t unlocked = 0;

	if (mrf_unlikely(!atomic_compare_exchange_strong_explicit(&quick->word, &unlocked,
								  1, memory_order_acquire,
								  memory_order_relaxed)))
		mrf_quick_wait(quick);
}

static inline void mrf_quick_release(struct mrf_quick *quick)
{
	if (mrf_unlikely(
		    atomic_exchange_explicit(&quick->word, 0, memory_order_release) == 2))
		mrf_quick_wake(quick);
}

#endif

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the library's own. They block all signals, because signal handlers are the
 * application's.
 */
#ifndef MRF_BASE_THREAD_H
#define MRF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_errno.h>

/* -FI_EAGAIN: there may be no more threads; mrf_limit_text names the limits. */
int mrf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *name);

/* The calling thread is one of these, which it says itself; and is it? */
void mrf_thread_own(void);
bool mrf_thread_is_own(void);

/*
 * From now on the calling thread, when it is woken, does not preempt the thread that wakes it,
 * or another one that is at work, which would then have to wait for it.
 */
void mrf_thread_no_rush(void);

/* The error (positive) for the application, which -FI_EAGAIN would ask to try again soon. */
static inline int mrf_thread_err(int ret)
{
	return ret == -FI_EAGAIN ? FI_ENOMEM : -ret;
}

/*
 * One of n numbers (a power of two, at most 8) for an address of a thread's own. Stacks lie a power
 * of two apart, or that and a guard page. Three sevenths of such a number of pages is at least a
 * seventh away from a whole number, so that neighbours get different eighths.
 */
static inline unsigned mrf_thread_spread(uintptr_t own, unsigned n)
{
	return ((uint32_t)(own >> 12) * 0x6db6db6du >> 29) % n;
}

/* Where the calling thread begins in a table of n places, so that threads seldom meet. */
static inline unsigned mrf_thread_place(unsigned n)
{
	return mrf_thread_spread((uintptr_t)pthread_self(), n);
}

#endif

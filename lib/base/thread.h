/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library's own. All signals are blocked in them: handlers are the application's. */
#ifndef MRF_BASE_THREAD_H
#define MRF_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include <rdma/fi_errno.h>

/* -FI_EAGAIN: there may be no more threads; mrf_limit_text names the limits. */
int mrf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *name);

/* The error (positive) for the application, which -FI_EAGAIN would ask to try again soon. */
static inline int mrf_thread_err(int ret)
{
	return ret == -FI_EAGAIN ? FI_ENOMEM : -ret;
}

/*
 * One of n numbers, of which it uses at most 7, for an address of a thread's own. Stacks lie a
 * power of two apart, or that and a guard page: no such number of pages is a multiple of 7.
 */
static inline unsigned mrf_thread_spread(uintptr_t own, unsigned n)
{
	return (unsigned)((own >> 12) % 7) % n;
}

/* Where the calling thread begins in a table of n places, so that threads seldom meet. */
static inline unsigned mrf_thread_place(unsigned n)
{
	return mrf_thread_spread((uintptr_t)pthread_self(), n);
}

#endif

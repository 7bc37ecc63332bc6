/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library's own. All signals are blocked in them: handlers are the application's. */
#ifndef MRF_BASE_THREAD_H
#define MRF_BASE_THREAD_H

#include <pthread.h>
#include <rdma/fi_errno.h>

/* -FI_EAGAIN: there may be no more threads; mrf_limit_text names the limits. */
int mrf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *name);

/* The error (positive) for the application, which -FI_EAGAIN would ask to try again soon. */
static inline int mrf_thread_err(int ret)
{
	return ret == -FI_EAGAIN ? FI_ENOMEM : -ret;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread stops inside a function that the test wraps, and the process forks meanwhile: does
 * the child come to an end?
 */
#ifndef FORK_INSIDE_H
#define FORK_INSIDE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "child.h"

static atomic_int inside; /* 1: the next thread stops there; 2: it has */

/* Called by the function that is wrapped. */
static inline void stop_inside(void)
{
	int next = 1;

	if (atomic_compare_exchange_strong(&inside, &next, 2))
		usleep(200000);
}

static inline bool child_of_fork_inside_ends(void *(*call)(void *arg), void *arg,
					     bool (*child)(void))
{
	pthread_t thread;
	pid_t pid;
	bool ok;

	atomic_store(&inside, 1);
	if (pthread_create(&thread, NULL, call, arg))
		return false;
	while (atomic_load(&inside) != 2)
		sched_yield();
	pid = fork();
	if (!pid)
		_exit(!child());
	ok = child_succeeded(pid);
	pthread_join(thread, NULL);
	return ok;
}

#endif

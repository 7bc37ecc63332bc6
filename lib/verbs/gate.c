/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include "base/lock.h"
#include "verbs/gate.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void in_parent(void)
{
	pthread_mutex_unlock(&gate);
}

static void gate_in_child(void)
{
	static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;

	gate = open;
}

static void before_fork(void)
{
	pthread_mutex_lock(&gate);
}

static void gate_notice_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, gate_in_child);
}

void mrf_gate_enter(void)
{
	static pthread_once_t forks = PTHREAD_ONCE_INIT;

	mrf_slow_call();
	pthread_once(&forks, gate_notice_forks);
	pthread_mutex_lock(&gate);
}

void mrf_gate_leave(void)
{
	int err = errno;

	pthread_mutex_unlock(&gate);
	errno = err;
}

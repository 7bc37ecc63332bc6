/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include "base/gate.h"
#include "base/lock.h"

#define OPEN PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP

static pthread_mutex_t gates[MRF_GATES] = { OPEN, OPEN, OPEN };

static void before_fork(void)
{
	unsigned i;

	for (i = 0; i < MRF_GATES; i++)
		pthread_mutex_lock(&gates[i]);
}

static void in_parent(void)
{
	unsigned i;

	for (i = 0; i < MRF_GATES; i++)
		pthread_mutex_unlock(&gates[i]);
}

static void gates_in_child(void)
{
	static const pthread_mutex_t open = OPEN;
	unsigned i;

	for (i = 0; i < MRF_GATES; i++)
		gates[i] = open;
}

static void gate_notice_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, gates_in_child);
}

void mrf_gate_enter(enum mrf_gate gate)
{
	static pthread_once_t forks = PTHREAD_ONCE_INIT;

	mrf_slow_call();
	pthread_once(&forks, gate_notice_forks);
	pthread_mutex_lock(&gates[gate]);
}

void mrf_gate_leave(enum mrf_gate gate)
{
	int err = errno;

	pthread_mutex_unlock(&gates[gate]);
	errno = err;
}

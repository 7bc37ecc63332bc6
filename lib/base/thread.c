/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <signal.h>
#include "base/thread.h"

int mrf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *name)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(*thread, name);
	return -err;
}

static __thread bool own;

void mrf_thread_own(void)
{
	own = true;
}

bool mrf_thread_is_own(void)
{
	return own;
}

void mrf_thread_no_rush(void)
{
	const struct sched_param none = { 0 };
	struct sched_param now;
	int policy;

	if (!pthread_getschedparam(pthread_self(), &policy, &now) && policy == SCHED_OTHER)
		pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

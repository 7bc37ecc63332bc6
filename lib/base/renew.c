/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include "base/compiler.h"
#include "base/renew.h"

/* Guards the chain. A thread that forks has it meanwhile, so that the chain is whole in the child. */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static struct mrf_renewal *first, **end = &first;

static void chain_hold(void)
{
	pthread_mutex_lock(&adding);
}

static void chain_let_go(void)
{
	pthread_mutex_unlock(&adding);
}

static void chain_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct mrf_renewal *renewal;

	adding = fresh;
	for (renewal = first; renewal; renewal = renewal->next)
		renewal->in_child(renewal);
}

static void chain_notice_forks(void)
{
	(void)pthread_atfork(chain_hold, chain_let_go, chain_in_child);
}

void mrf_renewal_add(struct mrf_renewal *renewal)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (mrf_likely(atomic_load_explicit(&renewal->known, memory_order_acquire)))
		return;
	pthread_once(&once, chain_notice_forks);
	pthread_mutex_lock(&adding);
	if (!renewal->known) {
		*end = renewal;
		end = &renewal->next;
		atomic_store_explicit(&renewal->known, true, memory_order_release);
	}
	pthread_mutex_unlock(&adding);
}

void mrf_static_lock_renew(struct mrf_renewal *renewal)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct mrf_static_lock *lock = mrf_container_of(renewal, struct mrf_static_lock, renewal);

	lock->mutex = fresh;
	if (lock->in_child)
		lock->in_child();
}

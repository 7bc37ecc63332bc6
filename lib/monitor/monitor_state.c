/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/fork.h"
#include "base/lock.h"
#include "monitor/monitor_state.h"

static struct mrf_lock lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_PIN,
#endif
};

static sigset_t signals;	/* of the thread that holds the lock, before it took it */
static atomic_uintptr_t holder; /* thread that holds the lock; 0: none */
static _Atomic uint64_t owner;	/* process that has the monitor (base/fork.h); 0: none */
struct mrf_monitor_parts mrf_monitor_parts;

/*
 * Signals are blocked, because a handler that changes mappings would meet a hook, which would wait
 * for this thread.
 */
void mrf_monitor_lock(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	mrf_lock_take(&lock);
	signals = before;
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

void mrf_monitor_unlock(void)
{
	sigset_t before = signals;

	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	mrf_lock_release(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mrf_monitor_pause_locked(struct mrf_monitor_pause *pause)
{
	mrf_lock_held(&lock);
	pause->signals = signals;
	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	mrf_lock_release(&lock);
}

void mrf_monitor_resume(const struct mrf_monitor_pause *pause)
{
	mrf_lock_take(&lock);
	signals = pause->signals;
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

#ifdef MRF_LOCKRANK
void mrf_monitor_held(void)
{
	mrf_lock_held(&lock);
}
#endif

bool mrf_monitor_usable(void)
{
	uint64_t here = atomic_load_explicit(&owner, memory_order_acquire);

	return here && mrf_fork_ours(here);
}

bool mrf_monitor_holds(void)
{
	return atomic_load_explicit(&holder, memory_order_relaxed) == (uintptr_t)pthread_self();
}

void mrf_monitor_own(bool own)
{
	atomic_store_explicit(&owner, own ? mrf_fork_here() : 0, memory_order_release);
}

bool mrf_monitor_forget_state(void)
{
	bool had = atomic_exchange(&owner, 0);

	mrf_monitor_parts = (struct mrf_monitor_parts){ .hooks = false };
	/* Another thread may have had the lock at the time of the fork. */
	mrf_lock_renew(&lock);
	atomic_store(&holder, 0);
	return had;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/lock.h"

/*
 * How often to look at the word: about as long as a holder on another processor needs for
 * a short section.
 */
#define SPINS 100

void mrf_lock_wait(struct mrf_lock *lock)
{
	int i, nobody, err = errno;

	for (i = 0; i < SPINS; i++) {
		nobody = 0;
		if (atomic_compare_exchange_weak_explicit(
			    &lock->state, &nobody, 1, memory_order_acquire, memory_order_relaxed))
			return;
	}
	/*
	 * From here on the word is 2, even when we hold the lock: another thread may be
	 * waiting, too.
	 */
	while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire))
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = err;
}

void mrf_lock_wake(struct mrf_lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#ifdef MRF_LOCKRANK

#include <stdio.h>
#include <stdlib.h>

#define MAX_HELD 16

static __thread const struct mrf_lock *held[MAX_HELD];
static __thread int nheld;

void mrf_lock_rank_push(const struct mrf_lock *lock)
{
	if (nheld && held[nheld - 1]->rank >= lock->rank) {
		fprintf(stderr, "mrfab: lock rank %d taken under rank %d\n", lock->rank,
			held[nheld - 1]->rank);
		abort();
	}
	if (nheld == MAX_HELD)
		abort();
	held[nheld++] = lock;
}

void mrf_lock_rank_pop(const struct mrf_lock *lock)
{
	int i;

	/* Locks may be released in any order: close the gap. */
	for (i = nheld - 1; i >= 0 && held[i] != lock; i--)
		;
	if (i < 0)
		abort();
	for (nheld--; i < nheld; i++)
		held[i] = held[i + 1];
}

void mrf_lock_held(const struct mrf_lock *lock)
{
	int i;

	for (i = 0; i < nheld; i++)
		if (held[i] == lock)
			return;
	fprintf(stderr, "mrfab: a lock of rank %d is not held\n", lock->rank);
	abort();
}

void mrf_slow_call(void)
{
	int i;

	for (i = 0; i < nheld; i++) {
		if (held[i]->rank != MRF_RANK_EP)
			continue;
		fprintf(stderr, "mrfab: a call that may take long under an endpoint's lock\n");
		abort();
	}
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock.h"

#ifdef MRF_LOCKRANK

#include <stdio.h>
#include <stdlib.h>

#define MAX_HELD 16

static __thread enum mrf_lock_rank held[MAX_HELD];
static __thread int nheld;

void mrf_lock_init(struct mrf_lock *lock, enum mrf_lock_rank rank)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->rank = rank;
}

void mrf_lock_take(struct mrf_lock *lock)
{
	if (nheld && held[nheld - 1] >= lock->rank) {
		fprintf(stderr, "mrfab: lock rank %d taken under rank %d\n", lock->rank,
			held[nheld - 1]);
		abort();
	}
	if (nheld == MAX_HELD)
		abort();
	pthread_mutex_lock(&lock->mutex);
	held[nheld++] = lock->rank;
}

void mrf_lock_release(struct mrf_lock *lock)
{
	int i;

	/* Locks may be released in any order: close the gap. */
	for (i = nheld - 1; i >= 0 && held[i] != lock->rank; i--)
		;
	if (i < 0)
		abort();
	for (nheld--; i < nheld; i++)
		held[i] = held[i + 1];
	pthread_mutex_unlock(&lock->mutex);
}

#else
typedef int mrf_lock_c_is_not_empty;
#endif

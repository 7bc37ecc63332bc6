/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands in static variables and is not right in a forked child: a lock that another thread of
 * the parent holds, which the child does not have; and what only makes sense in the process that
 * made it. This is the one way to have it made anew; objects that the application opened are void
 * in a child and need none of it (fork.h). Apart from this only gate.c has handlers of forks.
 *
 * Any thread.
 */
#ifndef MRF_BASE_RENEW_H
#define MRF_BASE_RENEW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* Static. */
struct mrf_renewal {
	/* In each child, whose only thread this is; it must not wait. */
	void (*in_child)(struct mrf_renewal *renewal);
	struct mrf_renewal *next;
	atomic_bool known;
};

/*
 * Has in_child called in children from now on, in the order in which renewals were added. Once it is
 * known this costs one load. If the process has no memory for a handler, everything works as long as
 * it does not fork.
 */
void mrf_renewal_add(struct mrf_renewal *renewal);

/*
 * A static mutex that nobody holds in a child. It has no rank, unlike struct mrf_lock: the code of
 * others (a runtime, the C library) may run under it.
 */
struct mrf_static_lock {
	pthread_mutex_t mutex;
	struct mrf_renewal renewal;
	void (*in_child)(void); /* makes anew what else has to be; NULL: nothing */
};

void mrf_static_lock_renew(struct mrf_renewal *renewal);

#define MRF_STATIC_LOCK(also)                                                                  \
	{                                                                                      \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .renewal.in_child = mrf_static_lock_renew, \
		.in_child = also                                                               \
	}

static inline void mrf_static_take(struct mrf_static_lock *lock)
{
	mrf_renewal_add(&lock->renewal);
	pthread_mutex_lock(&lock->mutex);
}

static inline void mrf_static_release(struct mrf_static_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#endif

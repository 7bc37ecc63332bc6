/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex with a rank. A thread that holds a lock may only take locks of a higher rank:
 * this enum is the lock order of the library. A build with --enable-lockrank aborts with
 * both names when a thread breaks the order; other builds pay a plain pthread mutex.
 * mrf_lock_init cannot fail with the attributes used here.
 */
#ifndef MRF_BASE_LOCK_H
#define MRF_BASE_LOCK_H

#include <pthread.h>

enum mrf_lock_rank {
	MRF_RANK_WAIT = 1, /* obj/wait: the list of progress sources of a CQ or counter */
	MRF_RANK_EP,	   /* ep: peers, connections and operations of one endpoint */
	MRF_RANK_AV,	   /* obj/av: inserting and removing addresses */
	MRF_RANK_AGENT,	   /* domain/agent: commands and message buffers */
	MRF_RANK_MR,	   /* mr: key space and descriptor table of one domain */
	MRF_RANK_CQ,	   /* obj/cq: completion ring */
	MRF_RANK_CNTR,	   /* obj/cntr: waiters (the value itself is atomic) */
	MRF_RANK_EQ,	   /* obj/eq: event list */
	MRF_RANK_WAKE,	   /* obj/wait: threads asleep; taken with any of the above held */
	MRF_RANK_OBJ,	   /* obj/obj: who holds an object; nothing is taken under it ... */
	MRF_RANK_LOG	   /* ... but the log */
};

struct mrf_lock {
	pthread_mutex_t mutex;
#ifdef MRF_LOCKRANK
	enum mrf_lock_rank rank;
#endif
};

#ifdef MRF_LOCKRANK
void mrf_lock_init(struct mrf_lock *lock, enum mrf_lock_rank rank);
void mrf_lock_take(struct mrf_lock *lock);
void mrf_lock_release(struct mrf_lock *lock);
#else
static inline void mrf_lock_init(struct mrf_lock *lock, enum mrf_lock_rank rank)
{
	(void)rank;
	pthread_mutex_init(&lock->mutex, NULL);
}

static inline void mrf_lock_take(struct mrf_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void mrf_lock_release(struct mrf_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
#endif

static inline void mrf_lock_fini(struct mrf_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

#endif

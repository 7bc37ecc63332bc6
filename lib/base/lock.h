/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex with a rank. The mutex is one word, taken and released inline, with a futex of
 * the kernel for contention. An 8-byte access takes five locks; with pthread_mutex they
 * made up a fifth of the library's overhead.
 *
 * A thread that holds a lock may only take locks of a higher rank; the enum below is the
 * lock order of the library. A build with --enable-lockrank aborts with both names when a
 * thread breaks the order; other builds ignore ranks. mrf_lock_init cannot fail with the
 * attributes used here.
 */
#ifndef MRF_BASE_LOCK_H
#define MRF_BASE_LOCK_H

#include <stdatomic.h>

enum mrf_lock_rank {
	MRF_RANK_SETUP = 1, /* ep: bindings, enabling and flags of one endpoint */
	MRF_RANK_WAIT,	    /* obj/wait: the list of progress sources of a CQ or counter */
	MRF_RANK_EP,	    /* ep: peers, connections and operations of one endpoint */
	MRF_RANK_BOUNCE,    /* ep: free slots for small unregistered buffers, one endpoint's */
	MRF_RANK_AV,	    /* obj/av: inserting and removing addresses */
	MRF_RANK_AGENT,	    /* loop: kicks and commands; domain: its agent and event queue */
	MRF_RANK_MR,	    /* mr: key space and descriptor table of one domain */
	MRF_RANK_MAP,	    /* mr/map: the raw keys that were mapped on one domain */
	MRF_RANK_CQ,	    /* obj/cq: completion ring */
	MRF_RANK_CNTR,	    /* obj/cntr: waiters (the value itself is atomic) */
	MRF_RANK_EQ,	    /* obj/eq: event list */
	MRF_RANK_WAKE,	    /* obj/sleeper: threads asleep; any of the above may be held */
	MRF_RANK_OBJ,	    /* obj/obj: holders of an object; only LOG is taken under it */
	MRF_RANK_CACHE,	    /* buf: spare entries of the cache of local buffers, one domain's */
	MRF_RANK_NODE,	    /* base/itree: the pool of nodes; nothing is taken under it */
	MRF_RANK_HMEM, /* hmem: numbers of a runtime's allocations; nothing is taken under it */
	MRF_RANK_LOG,  /* the log */
	MRF_RANK_PIN   /* monitor: pins made on demand, of all domains; last, because
			      freeing memory under any other lock leads here:
			      monitor/hooks.h */
};

struct mrf_lock {
	atomic_int state; /* 0: free, 1: taken, 2: taken, and a thread may be waiting */
#ifdef MRF_LOCKRANK
	enum mrf_lock_rank rank;
#endif
};

/*
 * The slow parts: mrf_lock_wait waits until this thread has the lock; mrf_lock_wake wakes
 * a waiting thread.
 */
void mrf_lock_wait(struct mrf_lock *lock);
void mrf_lock_wake(struct mrf_lock *lock);

#ifdef MRF_LOCKRANK
void mrf_lock_rank_push(const struct mrf_lock *lock);
void mrf_lock_rank_pop(const struct mrf_lock *lock);
/*
 * Aborts unless this thread holds the lock: for the beginning of functions whose names end
 * in _locked. Costs nothing in builds without --enable-lockrank.
 */
void mrf_lock_held(const struct mrf_lock *lock);
/*
 * Aborts if this thread holds an endpoint's lock: for the beginning of functions that may wait
 * for the kernel, another thread or a disk, because every operation on the endpoint would wait
 * with them. Costs nothing in builds without --enable-lockrank. Some system calls that are
 * short and bounded are made under that lock all the same: posting and polling, waking a thread
 * (a write to an eventfd), watching a queue (epoll_ctl), verbs/vagain.c, mrf_vmr_revoke. Lines
 * of the log are written under it, too, and wait if nobody reads standard error.
 */
void mrf_slow_call(void);
#else
#define mrf_lock_held(lock) ((void)sizeof(lock))
#define mrf_slow_call() ((void)0)
#define mrf_lock_rank_push(lock) ((void)0)
#define mrf_lock_rank_pop(lock) ((void)0)
#endif

static inline void mrf_lock_init(struct mrf_lock *lock, enum mrf_lock_rank rank)
{
	(void)rank;
	atomic_init(&lock->state, 0);
#ifdef MRF_LOCKRANK
	lock->rank = rank;
#endif
}

/* In a forked child, for a lock that stands in a static variable (renew.h): nobody has it. */
static inline void mrf_lock_renew(struct mrf_lock *lock)
{
	atomic_store(&lock->state, 0);
}

static inline void mrf_lock_take(struct mrf_lock *lock)
{
	int nobody = 0;

	mrf_lock_rank_push(lock);
	if (!atomic_compare_exchange_strong_explicit(&lock->state, &nobody, 1, memory_order_acquire,
						     memory_order_relaxed))
		mrf_lock_wait(lock);
}

static inline void mrf_lock_release(struct mrf_lock *lock)
{
	mrf_lock_rank_pop(lock);
	if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
		mrf_lock_wake(lock);
}

/*
 * Taking and releasing without the slow parts, for functions so short that they cannot
 * afford to save a register for a call: they leave the slow part to another function, in
 * a tail call. mrf_lock_try returns 0 if the lock is taken already. mrf_lock_leave
 * releases the lock; if it returns nonzero, the caller has to call mrf_lock_wake.
 */
static inline int mrf_lock_try(struct mrf_lock *lock)
{
	int nobody = 0;

	if (!atomic_compare_exchange_strong_explicit(&lock->state, &nobody, 1, memory_order_acquire,
						     memory_order_relaxed))
		return 0;
	mrf_lock_rank_push(lock);
	return 1;
}

static inline int mrf_lock_leave(struct mrf_lock *lock)
{
	mrf_lock_rank_pop(lock);
	return atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2;
}

static inline void mrf_lock_fini(struct mrf_lock *lock)
{
	(void)lock;
}

#endif

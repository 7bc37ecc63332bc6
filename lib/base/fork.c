/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of this process is on a page that the kernel empties in a child
 * (MADV_WIPEONFORK), and that a handler of fork(3) clears as well. It counts up, so that
 * no descendant that was given an ancestor's pid takes it for its own. Every call on an
 * object of another process is -FI_EPERM and one line; it looks at nothing else and takes
 * no lock, since a thread that the child does not have may have held it.
 *
 * Objects that a child opens itself work: each domain has an ibv_context of its own, not
 * librdmacm's, which in a child is the parent's (verbs/vdev.c); the monitor starts from
 * nothing; librdmacm is called inside a gate that a fork waits for (gate.h).
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/fork.h"
#include "base/renew.h"

struct mrf_fork_page mrf_fork_page;

static void forget_process(struct mrf_renewal *renewal)
{
	(void)renewal;
	atomic_store_explicit(&mrf_fork_page.word, 0, memory_order_relaxed);
}

/*
 * There are two ways, because each misses some forks: the first misses those of kernels
 * with larger pages, the second those that do not go through fork(3).
 */
static void notice_forks(void)
{
	static struct mrf_renewal process = { .in_child = forget_process };

	(void)madvise(&mrf_fork_page, sizeof(mrf_fork_page), MADV_WIPEONFORK);
	mrf_renewal_add(&process);
}

/* The count keeps apart an ancestor and a descendant that was given the same pid. */
static uint64_t number_process(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static atomic_uint count;
	uint64_t word = 0, mine;

	pthread_once(&once, notice_forks);
	mine = (uint64_t)(atomic_fetch_add(&count, 1) + 1) << 32 | (unsigned)getpid();
	return atomic_compare_exchange_strong(&mrf_fork_page.word, &word, mine) ? mine : word;
}

uint64_t mrf_fork_here(void)
{
	uint64_t word = atomic_load_explicit(&mrf_fork_page.word, memory_order_relaxed);

	return mrf_likely(word) ? word : number_process();
}

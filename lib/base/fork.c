/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/fork.h"

struct mrf_fork_page mrf_fork_page;

static void wipe(void)
{
	atomic_store_explicit(&mrf_fork_page.word, 0, memory_order_relaxed);
}

/*
 * Two ways, because each misses some forks: the first those of kernels whose pages are
 * larger, the second those that do not go through fork(3).
 */
static void prepare(void)
{
	(void)madvise(&mrf_fork_page, sizeof(mrf_fork_page), MADV_WIPEONFORK);
	(void)pthread_atfork(NULL, NULL, wipe);
}

/* The count keeps apart an ancestor and a descendant that was given the same pid. */
static uint64_t begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static atomic_uint count;
	uint64_t word = 0, mine;

	pthread_once(&once, prepare);
	mine = (uint64_t)(atomic_fetch_add(&count, 1) + 1) << 32 | (unsigned)getpid();
	return atomic_compare_exchange_strong(&mrf_fork_page.word, &word, mine) ? mine : word;
}

uint64_t mrf_fork_here(void)
{
	uint64_t word = atomic_load_explicit(&mrf_fork_page.word, memory_order_relaxed);

	return mrf_likely(word) ? word : begin();
}

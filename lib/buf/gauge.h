/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts what a cache of local buffers has done, in memory that other processes of this user
 * can look at: a memfd, which `mrfab_info --pid` finds among the descriptors of the process by
 * its name. If no memfd can be made, the counts are in private memory.
 */
#ifndef MRF_BUF_GAUGE_H
#define MRF_BUF_GAUGE_H

#include <stdatomic.h>
#include <stdint.h>
#include "base/thread.h"

#define MRF_GAUGE_NAME "mrfab-cache"
#define MRF_GAUGE_MAGIC 0x31656761756766ull /* of this layout */
#define MRF_GAUGE_STRIPES 8

struct mrf_gauge {
	uint64_t magic;
	int64_t pid;	 /* of the process that counts */
	char domain[64]; /* name of its device */
	uint64_t max_entries;
	uint64_t max_bytes; /* UINT64_MAX: no limit */
	/* Written under the monitor's lock, read without one. */
	_Atomic uint64_t misses;
	_Atomic uint64_t evictions;
	_Atomic uint64_t invalidations;
	_Atomic uint64_t entries;
	_Atomic uint64_t bytes;
	/* Threads count apart, so that they do not wait for each other's cache lines. */
	struct {
		_Alignas(64) _Atomic uint64_t hits;
	} stripe[MRF_GAUGE_STRIPES];
};

/* NULL: no memory. */
struct mrf_gauge *mrf_gauge_open(const char *domain, int *fd);
void mrf_gauge_close(struct mrf_gauge *gauge, int fd);
uint64_t mrf_gauge_hits(const struct mrf_gauge *gauge);

static inline void mrf_gauge_hit(struct mrf_gauge *gauge)
{
	unsigned stripe = mrf_thread_place(MRF_GAUGE_STRIPES);

	atomic_fetch_add_explicit(&gauge->stripe[stripe].hits, 1, memory_order_relaxed);
}

/* Adds to a counter, under the lock that serialises its writers. */
static inline void mrf_gauge_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t mrf_gauge_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif

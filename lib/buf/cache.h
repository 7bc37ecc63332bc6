/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of local buffers: kernel MRs of memory that the application did not register,
 * made for one transfer and kept for the next ones. One for each domain. It holds no
 * remote right, so nothing that it keeps can be reached by a peer.
 *
 * A kept entry is whole pages of one private mapping. It ends when
 *   - the monitor reports that its memory is about to change, or has changed (at the latest
 *     before the thread that makes the change begins its next transfer);
 *   - it is the least recently used one, and a limit is reached (FI_MR_CACHE_MAX_COUNT,
 *     FI_MR_CACHE_MAX_SIZE, or the kernel has no room);
 *   - a new entry covers all of it.
 * Transfers that use the entry at that moment go on using it, until the last of them is done.
 * With FI_MR_CACHE_MERGE_REGIONS a new entry takes in those that it touches.
 *
 * No entry lies inside another. So among those that begin at or before an address, the
 * last one reaches farthest, and is the only one to look at.
 *
 * A hit takes no lock. All else is guarded by the monitor's lock.
 */
#ifndef MRF_BUF_CACHE_H
#define MRF_BUF_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_mrfab_cache_stats;
struct mrf_cache;
struct mrf_cached;
struct mrf_mr_space;

/*
 * Reads its limits from the environment. Nothing is kept if FI_MR_CACHE_MAX_COUNT is 0.
 * NULL: no memory.
 */
struct mrf_cache *mrf_cache_new(struct mrf_mr_space *space);
/* No entry may be in use. NULL is allowed. */
void mrf_cache_free(struct mrf_cache *cache);

/*
 * Finds or makes an entry that covers [addr, addr + len), len > 0, for the caller to use
 * until mrf_cache_put. write: the device will write there. Returns 0 and *entry; or 1:
 * this memory cannot be kept, so the caller has to register it; or the error of
 * registering it, -FI_EFAULT if it passes the end of the address space. May take long: no
 * lock may be held.
 */
int mrf_cache_get(struct mrf_cache *cache, const void *addr, size_t len, bool write,
		  struct mrf_cached **entry);
/* Any lock but the monitor's may be held. */
void mrf_cache_put(struct mrf_cached *entry);

/* The key for the device, of an entry that the caller uses. */
uint32_t mrf_cache_lkey(const struct mrf_cached *entry);

/* Any thread. Pages that are in two entries count twice. */
void mrf_cache_stats(struct mrf_cache *cache, struct fi_mrfab_cache_stats *stats);

#endif

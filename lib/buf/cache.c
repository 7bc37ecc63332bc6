/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of two steps keeps a hit right without a lock. A transfer first counts itself
 * as a user of the entry, and then checks whether the entry has ended and whether an event
 * of userfaultfd is being read (mrf_monitor_settled). A thread that ends an entry, or is about
 * to read an event, first announces that, and then looks for users. So either the transfer sees
 * that it came too late, or the entry is kept for it.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrfab.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/param.h"
#include "buf/cache.h"
#include "buf/cache_entry.h"
#include "buf/gauge.h"
#include "monitor/hooks.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/seg.h"
#include "mr/space.h"

#define TRIES 4	   /* while the memory changes all the time, or others take the room */
#define REFRESH 16 /* after so many misses the hooks look for objects that were loaded unseen */

struct mrf_cache {
	struct mrf_mr_space *space;
	struct mrf_mr_back *back; /* the whole address space: what pins belong to */
	struct mrf_cached_pool pool;
	bool merge;	       /* constant */
	struct mrf_itree tree; /* changed under the monitor's lock, and read without a lock, too */
	struct mrf_lru lru;
	struct mrf_gauge *gauge;
	int gauge_fd;
};

/* A range of whole pages that is asked for. */
struct want {
	uint64_t start;
	uint64_t end;
	bool write;
};

static struct mrf_cached *entry_of(const struct mrf_itree_node *node)
{
	return mrf_itree_value(node);
}

static uint64_t entry_end(const struct mrf_cached *entry)
{
	return entry->pin.addr + entry->pin.len;
}

static bool entry_covers(const struct mrf_cached *entry, const struct want *want)
{
	return entry->pin.addr <= want->start && entry_end(entry) >= want->end &&
	       (entry->write || !want->write);
}

/* --- using ------------------------------------------------------------------------ */

static void revoke_entry(struct mrf_cached *entry)
{
	mrf_monitor_lock();
	mrf_pin_revoke_locked(&entry->pin);
	mrf_monitor_unlock();
}

void mrf_cache_put(struct mrf_cached *entry)
{
	if (mrf_unlikely(mrf_cached_leave(entry)))
		revoke_entry(entry);
}

uint32_t mrf_cache_lkey(const struct mrf_cached *entry)
{
	return entry->pin.vmr.lkey;
}

/* NULL: there is none, or only a look with the monitor's lock, which is not held, can tell. */
static struct mrf_cached *use_entry(struct mrf_cache *cache, const struct want *want)
{
	struct mrf_itree_hit hit;
	struct mrf_cached *entry;

	if (mrf_unlikely(mrf_itree_try_below(&cache->tree, want->start, &hit) != MRF_ITREE_HIT))
		return NULL;
	entry = hit.value;
	if (mrf_likely(mrf_cached_enter(entry) && entry_covers(entry, want) &&
		       mrf_monitor_settled())) {
		mrf_lru_hit(&cache->lru, entry);
		return entry;
	}
	mrf_cache_put(entry);
	return NULL;
}

/* An entry that is in the tree has not ended, so a use that ends here cannot be its last one. */
static struct mrf_cached *use_locked(struct mrf_cache *cache, const struct want *want)
{
	struct mrf_itree_node *node = mrf_itree_below(&cache->tree, want->start);

	if (!node || !entry_covers(entry_of(node), want) || !mrf_monitor_settled())
		return NULL;
	mrf_cached_enter(entry_of(node));
	mrf_lru_hit(&cache->lru, entry_of(node));
	return entry_of(node);
}

/* --- room ------------------------------------------------------------------------- */

/*
 * The kernel has no room for len bytes. The oldest entries give way, or with all everything that
 * this process keeps. False: there is nothing left to give up.
 */
static bool evict_for(struct mrf_cache *cache, uint64_t len, bool all)
{
	uint64_t bytes = 0;

	mrf_monitor_lock();
	while (!all && bytes < len && mrf_lru_evict_locked(&cache->lru, &bytes))
		;
	mrf_monitor_unlock();
	if (!bytes && !mrf_room_make())
		return false;
	mrf_pins_reap(cache->space->backs);
	return true;
}

/* --- keeping ---------------------------------------------------------------------- */

/*
 * Ends the entries inside the new entry, and those around it, which exist only if another thread
 * was faster, or if they lack a right.
 */
static void replace_locked(struct mrf_cache *cache, const struct mrf_cached *entry)
{
	uint64_t start = entry->pin.addr, end = entry_end(entry);
	struct mrf_itree_node *node = mrf_itree_first(&cache->tree, start, end), *next;

	for (; node; node = next) {
		struct mrf_cached *other = entry_of(node);

		next = mrf_itree_next(&cache->tree, node, start, end);
		if ((other->pin.addr >= start && entry_end(other) <= end) ||
		    (other->pin.addr <= start && entry_end(other) >= end))
			mrf_pin_drop_locked(&other->pin, false);
	}
}

static void kept_locked(struct mrf_pin *pin)
{
	struct mrf_cached *entry = mrf_cached_of(pin);
	struct mrf_cache *cache = entry->cache;

	mrf_monitor_held();
	replace_locked(cache, entry);
	mrf_itree_insert(&cache->tree, entry->node, pin->addr, entry_end(entry), entry);
	mrf_lru_add_locked(&cache->lru, entry);
	mrf_cached_begin(entry);
}

static bool ended_locked(struct mrf_pin *pin, bool changed)
{
	struct mrf_cached *entry = mrf_cached_of(pin);
	struct mrf_cache *cache = entry->cache;

	mrf_monitor_held();
	mrf_itree_remove(&cache->tree, entry->node);
	mrf_lru_del_locked(&cache->lru, entry);
	mrf_gauge_add(&cache->gauge->invalidations, changed);
	return mrf_cached_end(entry);
}

static void cache_gone(struct mrf_cache *cache)
{
	mrf_cached_pool_fini(&cache->pool);
	free(cache);
}

static void free_entry(struct mrf_pin *pin)
{
	struct mrf_cached *entry = mrf_cached_of(pin);
	struct mrf_cache *cache = entry->cache;

	if (mrf_unlikely(mrf_cached_give(&cache->pool, entry)))
		cache_gone(cache);
}

static const struct mrf_pin_owner owner = { .kept_locked = kept_locked,
					    .ended_locked = ended_locked,
					    .free = free_entry };

/* --- how much --------------------------------------------------------------------- */

static bool takes_in(const struct mrf_cache *cache, const struct want *want,
		     const struct mrf_cached *entry)
{
	return cache->merge || (entry->pin.addr <= want->start && entry_end(entry) >= want->end);
}

static void widen_over(struct want *want, const struct mrf_cached *entry)
{
	want->start = mrf_min(want->start, entry->pin.addr);
	want->end = mrf_max(want->end, entry_end(entry));
	want->write |= entry->write;
}

/*
 * Widens the range over the entries around it, which lack a right, and over all that it touches
 * if these are to be merged.
 */
static struct want widen_locked(struct mrf_cache *cache, struct want want)
{
	uint64_t edge = cache->merge ? 1 : 0, start, end;
	struct mrf_itree_node *node;
	struct want wide = want;

	do {
		want = wide;
		start = want.start - edge;
		end = want.end + edge;
		node = mrf_itree_first(&cache->tree, start, end);
		for (; node; node = mrf_itree_next(&cache->tree, node, start, end)) {
			if (takes_in(cache, &want, entry_of(node)))
				widen_over(&wide, entry_of(node));
		}
	} while (wide.start != want.start || wide.end != want.end);
	return wide;
}

/* --- making ------------------------------------------------------------------------- */

/* A request for an entry, which is repeated until there is one. */
struct search {
	struct want want;
	bool counted; /* as a miss */
	bool exact;   /* the entry must not take in others around it */
	bool wide;    /* the entry would have taken others in */
};

enum { AGAIN = 2 }; /* beside the results of mrf_cache_get */

static void count_miss_locked(struct mrf_cache *cache, struct search *search)
{
	if (search->counted)
		return;
	search->counted = true;
	mrf_gauge_add(&cache->gauge->misses, 1);
	atomic_fetch_add_explicit(&cache->lru.clock, 1, memory_order_relaxed);
}

static void fill_entry(struct mrf_cached *entry, const struct want *want)
{
	struct mrf_cache *cache = entry->cache;

	entry->write = want->write;
	entry->pin.back = cache->back;
	entry->pin.owner = &owner;
	entry->pin.addr = want->start;
	entry->pin.len = want->end - want->start;
	entry->pin.revoked = false;
}

static int pin_entry_locked(struct mrf_cached *entry)
{
	unsigned rights = entry->write ? MRF_RIGHT_LOCAL_WRITE : 0;
	enum mrf_pinned pinned;
	int err;

	pinned = mrf_pin_local_locked(&entry->pin, rights, &err);
	if (pinned == MRF_PINNED)
		return 0;
	if (pinned == MRF_PIN_FAILED)
		return err;
	return pinned == MRF_PIN_AGAIN ? AGAIN : 1;
}

/* As mrf_cache_get, or AGAIN: looks again, with the lock, and makes room. */
static int find_or_make_locked(struct mrf_cached *entry, struct search *search,
			       struct mrf_cached **out)
{
	struct mrf_cache *cache = entry->cache;
	struct want want = search->want;
	int ret;

	mrf_monitor_held();
	*out = use_locked(cache, &want);
	if (*out)
		return 0;
	count_miss_locked(cache, search);
	if (!search->exact)
		want = widen_locked(cache, want);
	search->wide = want.start != search->want.start || want.end != search->want.end;
	if (!mrf_lru_fit_locked(&cache->lru, want.end - want.start))
		return 1;
	fill_entry(entry, &want);
	ret = pin_entry_locked(entry);
	if (!ret)
		*out = entry;
	return ret;
}

static int find_or_make(struct mrf_cache *cache, struct search *search, struct mrf_cached **out)
{
	struct mrf_cached *entry = mrf_cached_new(&cache->pool, cache, &cache->space->backs->local);
	int ret;

	if (!entry)
		return -FI_ENOMEM;
	if (!(atomic_load_explicit(&cache->lru.clock, memory_order_relaxed) % REFRESH))
		mrf_hooks_refresh();
	mrf_monitor_lock();
	ret = find_or_make_locked(entry, search, out);
	mrf_monitor_unlock();
	if (mrf_unlikely(ret || *out != entry))
		mrf_cached_give(&cache->pool, entry);
	if (mrf_unlikely(ret))
		mrf_pins_reap(cache->space->backs);
	return ret;
}

/* Tries again while there is something to give up, unless other threads take the room each time. */
static int make_with_room(struct mrf_cache *cache, struct search *search, struct mrf_cached **out)
{
	uint64_t len = search->want.end - search->want.start;
	int left = TRIES, ret;

	do
		ret = find_or_make(cache, search, out);
	while (mrf_unlikely(ret < 0 && left && mrf_room_helps(ret, len)) &&
	       evict_for(cache, len, !--left));
	return ret;
}

static int make_entry(struct mrf_cache *cache, const struct want *want, struct mrf_cached **entry)
{
	struct search search = { .want = *want };
	int tries, ret = AGAIN;

	for (tries = 0; ret == AGAIN && tries < TRIES; tries++) {
		search.exact = false;
		ret = make_with_room(cache, &search, entry);
		search.exact = true;
		if (mrf_unlikely(ret && ret != AGAIN && search.wide))
			ret = make_with_room(cache, &search, entry);
	}
	return ret == AGAIN ? 1 : ret;
}

/* The application's own monitor has not reported the change yet. */
static void drop_invalid(struct mrf_cached *entry)
{
	uintptr_t start = entry->pin.watch.start;

	mrf_monitor_changing(start, start + entry->pin.watch.len);
	mrf_cache_put(entry);
}

int mrf_cache_get(struct mrf_cache *cache, const void *addr, size_t len, bool write,
		  struct mrf_cached **out)
{
	uint64_t mask = cache->space->page_mask, first = (uintptr_t)addr, last = first + (len - 1);
	struct want want = { .start = first & ~mask, .end = (last | mask) + 1, .write = write };
	struct mrf_cached *entry;

	/* The last page of the address space belongs to nobody. */
	if (mrf_unlikely(last < first || !want.end))
		return -FI_EFAULT;
	entry = use_entry(cache, &want);
	if (mrf_likely(entry && mrf_watch_valid(&entry->pin.watch))) {
		*out = entry;
		return 0;
	}
	mrf_slow_call();
	if (entry)
		drop_invalid(entry);
	if (!mrf_monitor_settled())
		mrf_monitor_settle();
	if (!cache->lru.max_count || !mrf_mr_backs_monitored(cache->space->backs))
		return 1;
	return make_entry(cache, &want, out);
}

/* --- coming and going ------------------------------------------------------------- */

void mrf_cache_stats(struct mrf_cache *cache, struct fi_mrfab_cache_stats *stats)
{
	const struct mrf_gauge *gauge = cache->gauge;

	mrf_monitor_lock();
	*stats = (struct fi_mrfab_cache_stats){
		.hits = mrf_gauge_hits(gauge),
		.misses = mrf_gauge_get(&gauge->misses),
		.evictions = mrf_gauge_get(&gauge->evictions),
		.invalidations = mrf_gauge_get(&gauge->invalidations),
		.entries = mrf_gauge_get(&gauge->entries),
		.bytes = mrf_gauge_get(&gauge->bytes),
	};
	mrf_monitor_unlock();
}

static struct mrf_mr_back *cache_back_new(struct mrf_mr_space *space)
{
	struct mrf_mr_seg all = { .len = UINT64_MAX };
	struct mrf_mr_back *back = mrf_mr_back_new(space, 0, &all, 1);

	/* fi_mr_refresh is about regions. */
	if (back)
		back->notify = false;
	return back;
}

static void set_limits(struct mrf_cache *cache)
{
	cache->lru.max_count = mrf_param_size(MRF_PARAM_CACHE_COUNT);
	cache->lru.max_bytes = mrf_param_size(MRF_PARAM_CACHE_SIZE);
	cache->merge = mrf_param_bool(MRF_PARAM_CACHE_MERGE);
	cache->gauge->max_entries = cache->lru.max_count;
	cache->gauge->max_bytes = cache->lru.max_bytes;
}

struct mrf_cache *mrf_cache_new(struct mrf_mr_space *space)
{
	struct mrf_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->space = space;
	cache->back = cache_back_new(space);
	cache->gauge = mrf_gauge_open(mrf_vdev_name(space->vdev), &cache->gauge_fd);
	cache->lru.gauge = cache->gauge;
	mrf_list_init(&cache->lru.list);
	mrf_cached_pool_init(&cache->pool);
	if (!cache->back || !cache->gauge) {
		mrf_cache_free(cache);
		return NULL;
	}
	set_limits(cache);
	return cache;
}

void mrf_cache_free(struct mrf_cache *cache)
{
	if (!cache)
		return;
	mrf_monitor_lock();
	while (!mrf_list_empty(&cache->lru.list))
		mrf_pin_drop_locked(
			&mrf_list_entry(cache->lru.list.next, struct mrf_cached, lru)->pin, false);
	mrf_monitor_unlock();
	mrf_pins_reap(cache->space->backs);
	if (cache->back)
		mrf_mr_back_put(cache->back);
	if (cache->gauge)
		mrf_gauge_close(cache->gauge, cache->gauge_fd);
	if (mrf_cached_pool_close(&cache->pool))
		cache_gone(cache);
}

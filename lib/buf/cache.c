/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of two things keeps a hit right without a lock. A transfer first counts itself
 * as a user of the entry and then looks whether the entry has ended and whether an event
 * of userfaultfd is being read (mrf_monitor_settled); who ends an entry, or is about to
 * read an event, first says so and then looks for users. So either the transfer sees that
 * it came too late, or the entry is kept for it.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrfab.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/param.h"
#include "buf/cache.h"
#include "buf/entry.h"
#include "buf/gauge.h"
#include "monitor/hooks.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/seg.h"
#include "mr/space.h"

#define TRIES 4	   /* while the memory changes all the time, or others take the room */
#define REFRESH 16 /* misses: objects that were loaded unseen are looked for, beside userfaultfd */

struct mrf_cache {
	struct mrf_mr_space *space;
	struct mrf_mr_back *back; /* the whole address space: what pins belong to */
	struct mrf_cached_pool pool;
	uint64_t max_bytes; /* limits; constant */
	uint64_t max_count;
	bool merge;		/* constant */
	_Atomic uint64_t clock; /* misses so far */
	struct mrf_itree tree;	/* read without a lock, too */
	/* guarded by the monitor's lock */
	struct mrf_list lru;	 /* struct mrf_cached.lru, the least recently used first */
	struct mrf_gauge *gauge; /* hits: counted by any thread */
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

static bool covers(const struct mrf_cached *entry, const struct want *want)
{
	return entry->pin.addr <= want->start && entry_end(entry) >= want->end &&
	       (entry->write || !want->write);
}

/* --- using ------------------------------------------------------------------------ */

static void bury(struct mrf_cached *entry)
{
	mrf_monitor_lock();
	mrf_pin_bury_locked(&entry->pin);
	mrf_monitor_unlock();
}

void mrf_cache_put(struct mrf_cached *entry)
{
	if (mrf_unlikely(mrf_cached_leave(entry)))
		bury(entry);
}

uint32_t mrf_cache_lkey(const struct mrf_cached *entry)
{
	return entry->pin.vmr.lkey;
}

static void note_use(struct mrf_cache *cache, struct mrf_cached *entry)
{
	atomic_store_explicit(&entry->used,
			      atomic_load_explicit(&cache->clock, memory_order_relaxed),
			      memory_order_relaxed);
	mrf_gauge_hit(cache->gauge);
}

/* NULL: there is none, or it cannot be told without the monitor's lock, which is not held. */
static struct mrf_cached *use(struct mrf_cache *cache, const struct want *want)
{
	struct mrf_itree_hit hit;
	struct mrf_cached *entry;

	if (mrf_unlikely(mrf_itree_try_below(&cache->tree, want->start, &hit) != MRF_ITREE_HIT))
		return NULL;
	entry = hit.value;
	if (mrf_likely(mrf_cached_enter(entry) && covers(entry, want) && mrf_monitor_settled())) {
		note_use(cache, entry);
		return entry;
	}
	mrf_cache_put(entry);
	return NULL;
}

/* What stands in the tree has not ended, so nothing here can be the last use of it. */
static struct mrf_cached *use_locked(struct mrf_cache *cache, const struct want *want)
{
	struct mrf_itree_node *node = mrf_itree_below(&cache->tree, want->start);

	mrf_monitor_held();
	if (!node || !covers(entry_of(node), want) || !mrf_monitor_settled())
		return NULL;
	mrf_cached_enter(entry_of(node));
	note_use(cache, entry_of(node));
	return entry_of(node);
}

/* --- room ------------------------------------------------------------------------- */

static bool in_use(const struct mrf_cached *entry)
{
	return atomic_load(&entry->state) >= MRF_CACHED_USER;
}

/*
 * Entries take their place in the list when they are made, and again when their turn comes
 * here and they have been used since: a hit need not touch the list. NULL: all are in use.
 */
static struct mrf_cached *oldest_locked(struct mrf_cache *cache)
{
	uint64_t n = 2 * mrf_gauge_get(&cache->gauge->entries), used;
	struct mrf_cached *entry;

	mrf_monitor_held();
	while (n--) {
		entry = mrf_list_entry(cache->lru.next, struct mrf_cached, lru);
		used = atomic_load_explicit(&entry->used, memory_order_relaxed);
		if (used == entry->listed && !in_use(entry))
			return entry;
		entry->listed = used;
		mrf_list_del(&entry->lru);
		mrf_list_add_tail(&entry->lru, &cache->lru);
	}
	return NULL;
}

/* False: all are in use. */
static bool evict_locked(struct mrf_cache *cache, uint64_t *bytes)
{
	struct mrf_cached *entry = oldest_locked(cache);

	mrf_monitor_held();
	if (!entry)
		return false;
	*bytes += entry->pin.len;
	mrf_gauge_add(&cache->gauge->evictions, 1);
	mrf_pin_drop_locked(&entry->pin, false);
	return true;
}

static bool fit_in_locked(struct mrf_cache *cache, uint64_t len)
{
	uint64_t bytes = 0;

	mrf_monitor_held();
	if (len > cache->max_bytes || mrf_vmr_cut(0, len) < len)
		return false;
	while (mrf_gauge_get(&cache->gauge->entries) >= cache->max_count ||
	       mrf_gauge_get(&cache->gauge->bytes) > cache->max_bytes - len) {
		if (!evict_locked(cache, &bytes))
			return false;
	}
	return true;
}

/*
 * The kernel has no room for len bytes: the oldest give way, or, with all, whatever this process
 * keeps. False: nothing is left to be given up for it.
 */
static bool evict_for(struct mrf_cache *cache, uint64_t len, bool all)
{
	uint64_t bytes = 0;

	mrf_monitor_lock();
	while (!all && bytes < len && evict_locked(cache, &bytes))
		;
	mrf_monitor_unlock();
	if (!bytes && !mrf_room_make())
		return false;
	mrf_pins_reap(cache->space->backs);
	return true;
}

/* --- keeping ---------------------------------------------------------------------- */

/*
 * Replaces what would be inside the new entry, or around it: an entry around it is there
 * only if another thread was faster, or if it lacks a right.
 */
static void replace_locked(struct mrf_cache *cache, const struct mrf_cached *entry)
{
	uint64_t start = entry->pin.addr, end = entry_end(entry);
	struct mrf_itree_node *node = mrf_itree_first(&cache->tree, start, end), *next;

	mrf_monitor_held();
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
	mrf_gauge_add(&cache->gauge->entries, 1);
	mrf_gauge_add(&cache->gauge->bytes, pin->len);
	entry->listed = atomic_load_explicit(&cache->clock, memory_order_relaxed);
	atomic_store_explicit(&entry->used, entry->listed, memory_order_relaxed);
	mrf_list_add_tail(&entry->lru, &cache->lru);
	mrf_cached_begin(entry);
}

static bool ended_locked(struct mrf_pin *pin, bool changed)
{
	struct mrf_cached *entry = mrf_cached_of(pin);
	struct mrf_cache *cache = entry->cache;

	mrf_monitor_held();
	mrf_itree_remove(&cache->tree, entry->node);
	mrf_list_del(&entry->lru);
	mrf_gauge_add(&cache->gauge->entries, -1ull);
	mrf_gauge_add(&cache->gauge->bytes, -pin->len);
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
 * Takes in the entries around the range that only lack a right, and all that it touches if
 * they are to be merged.
 */
static struct want widen_locked(struct mrf_cache *cache, struct want want)
{
	uint64_t edge = cache->merge ? 1 : 0, start, end;
	struct mrf_itree_node *node;
	struct want wide = want;

	mrf_monitor_held();
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

/* What is asked for, again and again until it is there. */
struct ask {
	struct want want;
	bool counted; /* as a miss */
	bool exact;   /* is not to take in what is around it */
	bool wide;    /* has taken something in */
};

enum { AGAIN = 2 }; /* beside the results of mrf_cache_get */

static void count_miss_locked(struct mrf_cache *cache, struct ask *ask)
{
	mrf_monitor_held();
	if (ask->counted)
		return;
	ask->counted = true;
	mrf_gauge_add(&cache->gauge->misses, 1);
	atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed);
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

static void take_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *dead)
{
	struct mrf_list *node;

	mrf_monitor_held();
	mrf_list_init(dead);
	while ((node = mrf_list_pop(&backs->dead)))
		mrf_list_add_tail(&mrf_list_entry(node, struct mrf_pin, all)->node, dead);
}

/* What was not ended. */
static void put_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *dead)
{
	struct mrf_list *node;

	mrf_monitor_held();
	while ((node = mrf_list_pop(dead)))
		mrf_list_add_tail(&mrf_pin_at(node)->all, &backs->dead);
}

/* Registers what an entry is filled with; what gave way for it is ended before that. */
static int pin_entry_locked(struct mrf_cached *entry)
{
	struct mrf_mr_backs *backs = entry->cache->space->backs;
	enum mrf_pinned pinned;
	struct mrf_list dead;
	int err;

	mrf_monitor_held();
	take_dead_locked(backs, &dead);
	pinned = mrf_pin_local_locked(&entry->pin, entry->write ? MRF_RIGHT_LOCAL_WRITE : 0, &dead,
				      &err);
	put_dead_locked(backs, &dead);
	if (pinned == MRF_PINNED)
		return 0;
	if (pinned == MRF_PIN_FAILED)
		return err;
	return pinned == MRF_PIN_AGAIN ? AGAIN : 1;
}

/* As mrf_cache_get, or AGAIN: looks again, with the lock, and makes room. */
static int find_or_make_locked(struct mrf_cached *entry, struct ask *ask, struct mrf_cached **out)
{
	struct mrf_cache *cache = entry->cache;
	struct want want = ask->want;
	int ret;

	mrf_monitor_held();
	*out = use_locked(cache, &want);
	if (*out)
		return 0;
	count_miss_locked(cache, ask);
	if (!ask->exact)
		want = widen_locked(cache, want);
	ask->wide = want.start != ask->want.start || want.end != ask->want.end;
	if (!fit_in_locked(cache, want.end - want.start))
		return 1;
	fill_entry(entry, &want);
	ret = pin_entry_locked(entry);
	if (!ret)
		*out = entry;
	return ret;
}

static int find_or_make(struct mrf_cache *cache, struct ask *ask, struct mrf_cached **out)
{
	struct mrf_cached *entry = mrf_cached_new(&cache->pool, cache, &cache->space->backs->local);
	int ret;

	if (!entry)
		return -FI_ENOMEM;
	if (!(atomic_load_explicit(&cache->clock, memory_order_relaxed) % REFRESH))
		mrf_hooks_refresh();
	mrf_monitor_lock();
	ret = find_or_make_locked(entry, ask, out);
	mrf_monitor_unlock();
	if (mrf_unlikely(ret || *out != entry))
		mrf_cached_give(&cache->pool, entry);
	if (mrf_unlikely(ret))
		mrf_pins_reap(cache->space->backs);
	return ret;
}

/* While there is something to be given up for it, and others do not take the room each time. */
static int make_with_room(struct mrf_cache *cache, struct ask *ask, struct mrf_cached **out)
{
	uint64_t len = ask->want.end - ask->want.start;
	int left = TRIES, ret;

	do
		ret = find_or_make(cache, ask, out);
	while (mrf_unlikely(ret < 0 && left && mrf_room_helps(ret, len)) &&
	       evict_for(cache, len, !--left));
	return ret;
}

static int miss(struct mrf_cache *cache, const struct want *want, struct mrf_cached **entry)
{
	struct ask ask = { .want = *want };
	int tries, ret = AGAIN;

	for (tries = 0; ret == AGAIN && tries < TRIES; tries++) {
		ask.exact = false;
		ret = make_with_room(cache, &ask, entry);
		ask.exact = true;
		if (mrf_unlikely(ret && ret != AGAIN && ask.wide))
			ret = make_with_room(cache, &ask, entry);
	}
	return ret == AGAIN ? 1 : ret;
}

/* A monitor of the application's own had not told of it yet. */
static void drop_invalid(struct mrf_cached *entry)
{
	uintptr_t start = entry->pin.watch.start;

	mrf_watches_changing(start, start + entry->pin.watch.len);
	mrf_cache_put(entry);
}

int mrf_cache_get(struct mrf_cache *cache, const void *addr, size_t len, bool write,
		  struct mrf_cached **out)
{
	uint64_t mask = cache->space->page_mask, first = (uintptr_t)addr, last = first + (len - 1);
	struct want want = { .start = first & ~mask, .end = (last | mask) + 1, .write = write };
	struct mrf_cached *entry;

	/* The last page of all is nobody's. */
	if (mrf_unlikely(last < first || !want.end))
		return -FI_EFAULT;
	entry = use(cache, &want);
	if (mrf_likely(entry && mrf_watch_valid(&entry->pin.watch))) {
		*out = entry;
		return 0;
	}
	mrf_slow_call();
	if (entry)
		drop_invalid(entry);
	if (!mrf_monitor_settled())
		mrf_monitor_settle();
	if (!cache->max_count || !mrf_mr_backs_monitored(cache->space->backs))
		return 1;
	return miss(cache, &want, out);
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
	cache->max_count = mrf_param_size(MRF_PARAM_CACHE_COUNT);
	cache->max_bytes = mrf_param_size(MRF_PARAM_CACHE_SIZE);
	cache->merge = mrf_param_bool(MRF_PARAM_CACHE_MERGE);
	cache->gauge->max_entries = cache->max_count;
	cache->gauge->max_bytes = cache->max_bytes;
}

struct mrf_cache *mrf_cache_new(struct mrf_mr_space *space)
{
	struct mrf_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->space = space;
	cache->back = cache_back_new(space);
	cache->gauge = mrf_gauge_open(mrf_vdev_name(space->vdev), &cache->gauge_fd);
	mrf_list_init(&cache->lru);
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
	while (!mrf_list_empty(&cache->lru))
		mrf_pin_drop_locked(&mrf_list_entry(cache->lru.next, struct mrf_cached, lru)->pin,
				    false);
	mrf_monitor_unlock();
	mrf_pins_reap(cache->space->backs);
	if (cache->back)
		mrf_mr_back_put(cache->back);
	if (cache->gauge)
		mrf_gauge_close(cache->gauge, cache->gauge_fd);
	if (mrf_cached_pool_close(&cache->pool))
		cache_gone(cache);
}

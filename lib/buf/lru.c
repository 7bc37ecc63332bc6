/* SPDX-License-Identifier: BSD-2-Clause */
#include "buf/lru.h"
#include "monitor/monitor.h"
#include "mr/demand/unpin.h"

void mrf_lru_add_locked(struct mrf_lru *lru, struct mrf_cached *entry)
{
	mrf_monitor_held();
	mrf_gauge_add(&lru->gauge->entries, 1);
	mrf_gauge_add(&lru->gauge->bytes, entry->pin.len);
	entry->listed = atomic_load_explicit(&lru->clock, memory_order_relaxed);
	atomic_store_explicit(&entry->used, entry->listed, memory_order_relaxed);
	mrf_list_add_tail(&entry->lru, &lru->list);
}

void mrf_lru_del_locked(struct mrf_lru *lru, struct mrf_cached *entry)
{
	mrf_monitor_held();
	mrf_list_del(&entry->lru);
	mrf_gauge_add(&lru->gauge->entries, -1ull);
	mrf_gauge_add(&lru->gauge->bytes, -entry->pin.len);
}

static bool in_use(const struct mrf_cached *entry)
{
	return atomic_load(&entry->state) >= MRF_CACHED_USER;
}

/*
 * An entry goes to the end of the list when it is made, and again when it has come to the front
 * and was used meanwhile: so a hit need not touch the list. NULL: all are in use.
 */
static struct mrf_cached *oldest_locked(struct mrf_lru *lru)
{
	uint64_t n = 2 * mrf_gauge_get(&lru->gauge->entries), used;
	struct mrf_cached *entry;

	while (n--) {
		entry = mrf_list_entry(lru->list.next, struct mrf_cached, lru);
		used = atomic_load_explicit(&entry->used, memory_order_relaxed);
		if (used == entry->listed && !in_use(entry))
			return entry;
		entry->listed = used;
		mrf_list_del(&entry->lru);
		mrf_list_add_tail(&entry->lru, &lru->list);
	}
	return NULL;
}

bool mrf_lru_evict_locked(struct mrf_lru *lru, uint64_t *bytes)
{
	struct mrf_cached *entry = oldest_locked(lru);

	mrf_monitor_held();
	if (!entry)
		return false;
	*bytes += entry->pin.len;
	mrf_gauge_add(&lru->gauge->evictions, 1);
	mrf_pin_drop_locked(&entry->pin, false);
	return true;
}

bool mrf_lru_fit_locked(struct mrf_lru *lru, uint64_t len)
{
	uint64_t bytes = 0;

	mrf_monitor_held();
	if (len > lru->max_bytes || mrf_vmr_cut(0, len) < len)
		return false;
	while (mrf_gauge_get(&lru->gauge->entries) >= lru->max_count ||
	       mrf_gauge_get(&lru->gauge->bytes) > lru->max_bytes - len) {
		if (!mrf_lru_evict_locked(lru, &bytes))
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include "base/thread.h"
#include "monitor/announce.h"

enum state { FREE, TAKEN, TOLD };

static struct place {
	_Alignas(64) atomic_uint state;
	atomic_uintptr_t start; /* of what is TOLD */
	atomic_uintptr_t end;
} places[MRF_ANNOUNCE_PLACES];

static atomic_uint crowd;

static unsigned claim_place(void)
{
	unsigned i, at = mrf_thread_place(MRF_ANNOUNCE_PLACES), free;

	for (i = 0; i < MRF_ANNOUNCE_PLACES; i++) {
		free = FREE;
		if (atomic_compare_exchange_strong(&places[at].state, &free, TAKEN))
			return at;
		at = (at + 1) % MRF_ANNOUNCE_PLACES;
	}
	return MRF_ANNOUNCE_CROWD;
}

unsigned mrf_announce(uintptr_t start, uintptr_t end)
{
	unsigned at = claim_place();

	if (at == MRF_ANNOUNCE_CROWD) {
		atomic_fetch_add(&crowd, 1);
		return at;
	}
	atomic_store_explicit(&places[at].start, start, memory_order_relaxed);
	atomic_store_explicit(&places[at].end, end, memory_order_relaxed);
	atomic_store(&places[at].state, TOLD);
	return at;
}

void mrf_announce_end(unsigned place)
{
	if (place == MRF_ANNOUNCE_CROWD)
		atomic_fetch_sub(&crowd, 1);
	else if (place < MRF_ANNOUNCE_PLACES)
		atomic_store_explicit(&places[place].state, FREE, memory_order_release);
}

/*
 * A thread that has TAKEN a place looks at it again after it is TOLD, and sees what the
 * caller set. The same holds for a place that changes hands while it is read here.
 */
bool mrf_announced(uintptr_t start, uintptr_t end)
{
	unsigned i;

	if (atomic_load(&crowd))
		return true;
	for (i = 0; i < MRF_ANNOUNCE_PLACES; i++) {
		if (atomic_load(&places[i].state) == TOLD &&
		    atomic_load_explicit(&places[i].start, memory_order_relaxed) < end &&
		    atomic_load_explicit(&places[i].end, memory_order_relaxed) > start)
			return true;
	}
	return false;
}

void mrf_announce_clear(void)
{
	unsigned i;

	for (i = 0; i < MRF_ANNOUNCE_PLACES; i++)
		atomic_store(&places[i].state, FREE);
	atomic_store(&crowd, 0);
}

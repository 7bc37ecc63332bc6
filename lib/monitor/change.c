/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include "base/known.h"
#include "base/page.h"
#include "base/thread.h"
#include "monitor/change.h"

/* --- announcements ------------------------------------------------------------------ */

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

/* --- the steps ------------------------------------------------------------------------ */

static struct mrf_hooks_listener *_Atomic listeners[MRF_HOOKS_LISTENERS];

/* Listeners are added one after the other, and stay. */
static struct mrf_hooks_listener *listener_at(unsigned i)
{
	return atomic_load_explicit(&listeners[i], memory_order_acquire);
}

static void tell_listeners(uintptr_t start, uintptr_t end)
{
	struct mrf_hooks_listener *listener;
	unsigned i;

	for (i = 0; i < MRF_HOOKS_LISTENERS && (listener = listener_at(i)); i++) {
		if (atomic_load(&listener->armed))
			listener->changing(start, end);
	}
}

bool mrf_change_matters(void)
{
	struct mrf_hooks_listener *listener;
	unsigned i;

	for (i = 0; i < MRF_HOOKS_LISTENERS && (listener = listener_at(i)); i++) {
		if (atomic_load_explicit(&listener->armed, memory_order_relaxed))
			return true;
	}
	return mrf_known_any();
}

/* errno belongs to the call, which does not change it when it succeeds. */
static unsigned begin_change(uintptr_t start, uintptr_t end)
{
	int err = errno;
	unsigned place = mrf_announce(start, end);

	mrf_known_change();
	tell_listeners(start, end);
	errno = err;
	return place;
}

static uintptr_t page_start(const void *addr)
{
	return (uintptr_t)addr & ~(uintptr_t)(mrf_page_size() - 1);
}

static uintptr_t page_end(const void *addr, size_t len)
{
	uintptr_t mask = mrf_page_size() - 1, end = (uintptr_t)addr + len;

	return end < (uintptr_t)addr || end > UINTPTR_MAX - mask ? UINTPTR_MAX
								 : (end + mask) & ~mask;
}

unsigned mrf_change_begin(const void *addr, size_t len)
{
	return begin_change(page_start(addr), page_end(addr, len));
}

unsigned mrf_change_begin_all(void)
{
	return begin_change(0, UINTPTR_MAX);
}

unsigned mrf_change_announce(const void *addr, size_t len)
{
	unsigned place = mrf_announce(page_start(addr), page_end(addr, len));

	mrf_known_change();
	return place;
}

void mrf_change_end(unsigned place)
{
	if (place == MRF_ANNOUNCE_NONE)
		return;
	mrf_known_changed();
	mrf_announce_end(place);
}

void mrf_change_was(const void *addr, size_t len)
{
	mrf_change_end(mrf_change_begin(addr, len));
}

void mrf_change_tell(const void *addr, size_t len)
{
	int err = errno;

	tell_listeners(page_start(addr), page_end(addr, len));
	errno = err;
}

bool mrf_change_listen(struct mrf_hooks_listener *listener)
{
	unsigned i;

	for (i = 0; i < MRF_HOOKS_LISTENERS; i++) {
		struct mrf_hooks_listener *nobody = NULL;

		if (listener_at(i) == listener ||
		    atomic_compare_exchange_strong(&listeners[i], &nobody, listener))
			return true;
	}
	return false;
}

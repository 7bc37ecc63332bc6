/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/maps.h"
#include "monitor/ground.h"
#include "monitor/hooks.h"
#include "monitor/monitor.h"
#include "monitor/pieces.h"
#include "monitor/reported.h"
#include "monitor/uffd.h"
#include "monitor/watches.h"

static atomic_bool proved; /* by userfaultfd: watched memory is private and anonymous */
atomic_bool mrf_monitor_learning;

/* Guarded by the lock. */
static struct mrf_list clients = { &clients, &clients };
static struct mrf_pieces pieces;
static bool ground_armed; /* the listener, for there may be ground */

_Static_assert(MRF_MONITOR_PART == MRF_CHUNK, "a piece lies in one mapping");

static void monitored_change(uintptr_t start, uintptr_t end);
/* armed: the number of watches, and 1 for ground */
static struct mrf_hooks_listener listener = { .changing = monitored_change };

/* --- watches ---------------------------------------------------------------------- */

int mrf_watch_init(struct mrf_watch *watch, struct mrf_monitor_client *client)
{
	watch->client = client;
	watch->sub.len = 0;
	mrf_list_init(&watch->of_peers);
	watch->node = mrf_itree_node_new();
	return watch->node ? 0 : -FI_ENOMEM;
}

void mrf_watch_fini(struct mrf_watch *watch)
{
	mrf_unsubscribe(&watch->sub);
	mrf_itree_node_free(watch->node);
	watch->node = NULL;
}

/* --- watching ------------------------------------------------------------------------ */

/* Arms the hooks before the calls that may have passed them unarmed are counted. */
static void enter_watch_locked(struct mrf_watch *watch)
{
	atomic_fetch_add(&listener.armed, 1);
	mrf_watches_add_locked(watch);
}

static void leave_watch_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	mrf_watches_remove_locked(watch);
	atomic_fetch_sub(&listener.armed, 1);
}

static void arm_for_ground_locked(void)
{
	if (!ground_armed)
		atomic_fetch_add(&listener.armed, 1);
	ground_armed = true;
}

/*
 * After a failure memory that was not registered here is left alone: before Linux 6.15 a range
 * can be unregistered from another userfaultfd, too.
 */
static int register_watch_locked(struct mrf_watch *watch)
{
	uintptr_t upto;
	int ret;

	if (!mrf_monitor_parts.uffd)
		return 0;
	arm_for_ground_locked();
	ret = mrf_reported_add_locked(watch, &upto);
	if (!ret) {
		if (!watch->alone)
			mrf_watches_in_ground_locked(watch);
		return 0;
	}
	leave_watch_locked(watch);
	mrf_reported_release_locked(watch->start, upto);
	return ret;
}

void mrf_monitor_settle(void)
{
	mrf_monitor_lock();
	mrf_monitor_unlock();
}

bool mrf_monitor_stands_locked(const struct mrf_watch *watch)
{
	uintptr_t end = mrf_watch_end(watch);

	mrf_monitor_held();
	return mrf_monitor_parts.uffd && mrf_monitor_parts.hooks &&
	       mrf_chunk_end(watch->start, end) == end && mrf_ground_has(watch->start, end);
}

int mrf_monitor_watch_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	if (!mrf_monitor_usable() || (mrf_monitor_parts.hooks && !mrf_hooks_in_force()))
		return -FI_ENOSYS;
	if (mrf_reported_discarded_locked(watch->start, mrf_watch_end(watch)))
		return -FI_EINVAL;
	enter_watch_locked(watch);
	if (!mrf_monitor_parts.hooks || mrf_hooks_quiet(watch->start, mrf_watch_end(watch)))
		return register_watch_locked(watch);
	leave_watch_locked(watch);
	return -FI_EINVAL;
}

void mrf_monitor_unwatch_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	if (!mrf_watch_on(watch))
		return;
	leave_watch_locked(watch);
	if (watch->alone)
		mrf_reported_release_locked(watch->start, mrf_watch_end(watch));
}

bool mrf_monitor_proves(void)
{
	return atomic_load_explicit(&proved, memory_order_relaxed);
}

bool mrf_monitor_sure(struct mrf_watch *watch)
{
	if (mrf_monitor_proves())
		return true;
	return mrf_maps_all_private(watch->start, mrf_watch_end(watch)) &&
	       mrf_subscribe(&watch->sub, watch->start, watch->len);
}

/* --- how much ----------------------------------------------------------------------- */

static enum mrf_pieces_room look_for_room(void)
{
	enum mrf_pieces_room room = MRF_PIECES_FIT;

	mrf_monitor_lock();
	pieces.count = mrf_watches_pieces_locked() + mrf_ground_count();
	if (mrf_monitor_parts.uffd)
		room = mrf_pieces_room(&pieces, (uint64_t)mrf_now_ms());
	mrf_monitor_unlock();
	return room;
}

bool mrf_monitor_has_room(void)
{
	enum mrf_pieces_room room;
	unsigned mappings;
	bool fit;

	mrf_hooks_refresh();
	room = look_for_room();
	if (mrf_likely(room != MRF_PIECES_UNKNOWN))
		return room == MRF_PIECES_FIT;
	mappings = mrf_maps_count();
	mrf_monitor_lock();
	fit = mrf_pieces_counted(&pieces, mappings, (uint64_t)mrf_now_ms());
	if (!fit)
		mrf_reported_trim_locked();
	mrf_monitor_unlock();
	return fit;
}

/* --- changes ---------------------------------------------------------------------- */

static void drop_watch_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	mrf_monitor_unwatch_locked(watch);
	watch->client->hit = true;
	watch->client->drop(watch);
}

static void drop_range_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_watch *watch;

	mrf_monitor_held();
	while ((watch = mrf_watches_first_locked(start, end)))
		drop_watch_locked(watch);
}

void mrf_monitor_tell_locked(void)
{
	mrf_monitor_held();
	mrf_list_each (node, &clients) {
		struct mrf_monitor_client *client =
			mrf_list_entry(node, struct mrf_monitor_client, node);

		if (client->hit && client->dropped)
			client->dropped(client->arg);
		client->hit = false;
	}
}

/* A hook calls this in the thread that is about to change the range. */
static void monitored_change(uintptr_t start, uintptr_t end)
{
	if (mrf_likely(!mrf_watches_touch(start, end)) || mrf_monitor_holds() ||
	    !mrf_monitor_usable())
		return;
	mrf_monitor_lock();
	if (mrf_monitor_parts.hooks) {
		drop_range_locked(start, end);
		mrf_reported_change_locked(start, end);
	}
	mrf_monitor_tell_locked();
	mrf_monitor_unlock();
}

void mrf_monitor_changing(uintptr_t start, uintptr_t end)
{
	if (mrf_monitor_holds() || !mrf_monitor_usable())
		return;
	mrf_monitor_lock();
	if (mrf_monitor_parts.import)
		drop_range_locked(start, end);
	mrf_monitor_tell_locked();
	mrf_monitor_unlock();
}

void mrf_monitor_drop_all(void)
{
	mrf_monitor_lock();
	mrf_monitor_parts.import = false;
	mrf_monitor_own(false);
	drop_range_locked(0, UINTPTR_MAX);
	mrf_monitor_tell_locked();
	mrf_monitor_unlock();
}

void mrf_monitor_lose_locked(void)
{
	mrf_monitor_held();
	mrf_watches_each_of_peers_locked(drop_watch_locked);
}

void mrf_monitor_change_locked(const struct mrf_uffd_event *event)
{
	mrf_monitor_held();
	drop_range_locked(event->start, event->end);
	mrf_reported_event_locked(event);
}

/* --- coming and going ------------------------------------------------------------- */

int mrf_monitor_listen(void)
{
	return mrf_hooks_listen(&listener);
}

void mrf_monitor_enter_locked(struct mrf_monitor_client *client)
{
	mrf_monitor_held();
	mrf_list_add_tail(&client->node, &clients);
}

void mrf_monitor_leave_locked(struct mrf_monitor_client *client)
{
	mrf_monitor_held();
	mrf_list_del(&client->node);
}

static void clear_registered(void)
{
	mrf_watches_clear();
	mrf_reported_clear();
	memset(&pieces, 0, sizeof(pieces));
	ground_armed = false;
}

void mrf_monitor_start(struct mrf_monitor_parts with)
{
	unsigned half = mrf_maps_limit() / 2;

	mrf_monitor_lock();
	clear_registered();
	mrf_pieces_start(&pieces, half);
	mrf_monitor_parts = with;
	atomic_store(&proved, with.uffd);
	mrf_monitor_own(true);
	mrf_monitor_unlock();
}

void mrf_monitor_stop(void)
{
	struct mrf_watch *watch;

	mrf_monitor_lock();
	while ((watch = mrf_watches_first_locked(0, UINTPTR_MAX)))
		leave_watch_locked(watch);
	if (ground_armed)
		atomic_fetch_sub(&listener.armed, 1);
	clear_registered();
	mrf_monitor_own(false);
	mrf_monitor_parts = (struct mrf_monitor_parts){ .hooks = false };
	mrf_monitor_unlock();
}

bool mrf_monitor_forget(void)
{
	mrf_list_init(&clients);
	mrf_watches_forget();
	clear_registered();
	atomic_store(&listener.armed, 0);
	atomic_store(&mrf_monitor_learning, false);
	mrf_hooks_in_child();
	return mrf_monitor_forget_state();
}

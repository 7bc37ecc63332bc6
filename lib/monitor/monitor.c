/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is watched: an interval tree, which hooks look at without a lock, so that a change
 * of memory that nobody watches costs a few reads, however much is watched elsewhere.
 *
 * Why no change is missed: a hook announces its range and then looks into the tree, and a
 * watch is put into the tree before announcements are looked for; all of these accesses
 * are sequentially consistent (announce.h; the counter of the tree). If the hook does not
 * find the watch, the counter had not moved when it looked last, so its announcement is
 * older than the end of the insertion, and the thread that watches sees it and refuses to
 * watch. If the hook meets the tree in the middle of a change, or finds an overlap, it
 * takes the lock and looks again.
 *
 * Watching by userfaultfd splits mappings: the kernel does not keep watched pages and
 * others in one mapping, nor those of two descriptors, and mremap moves one mapping at a
 * time. It fails with EFAULT across the edge of what is watched, unless a hook comes
 * first, which ends the watch; then the kernel joins the pieces again (pieces.h).
 *
 * What was registered stays so: ground (ground.h). It goes when its memory changes, as
 * watches do, by the same rules: a hook takes exactly its range out before the call, and
 * an event when it is read. For a watch that begins in ground, what proves a registration
 * (mrf_uffd_verify) has been proved before, but for one thing: that no change is under way
 * whose event has not been read. The kernel is asked that (mrf_uffds_quiet). Any change
 * that begins later meets the watch.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/maps.h"
#include "monitor/discard.h"
#include "monitor/ground.h"
#include "monitor/hooks.h"
#include "monitor/monitor.h"
#include "monitor/pieces.h"
#include "monitor/uffds.h"

#define GRID ((uintptr_t)64 << 10) /* MRF_GROUND_GRID */

static struct mrf_lock lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_PIN,
#endif
};

static _Atomic uint64_t owner;	/* process that has the monitor (base/fork.h); 0: none */
static atomic_uintptr_t holder; /* thread that holds the lock; 0: none */
static atomic_bool proved;	/* by userfaultfd: what is watched is private and anonymous */
atomic_bool mrf_monitor_learning;

/* Guarded by lock; hooks read the tree without it. */
static struct mrf_itree watches; /* each node's value: its struct mrf_watch */
static struct mrf_monitor_parts parts;
static struct mrf_list clients = { &clients, &clients };
/* struct mrf_watch.group of clients that are not local: of each descriptor, of several */
static struct mrf_list groups[MRF_UFFDS];
static struct mrf_list wide = { &wide, &wide };
static struct mrf_discards discards;
static sigset_t signals; /* of the thread that holds the lock, before it took it */
static struct mrf_pieces pieces;
static unsigned long alone; /* pieces of watches that are registered for themselves */
static bool ground_armed;   /* the listener, for there may be ground */
/*
 * Watches that may not lie in ground. While there are none, a hook that meets no ground meets
 * no watch. Raised before a watch is entered and before ground that a watch may need goes.
 */
static atomic_uint loose;

_Static_assert(MRF_MONITOR_PART == MRF_UFFD_CHUNK, "a descriptor's chunk is a part");

static void changing(uintptr_t start, uintptr_t end);
/* armed: the number of watches, and 1 for ground */
static struct mrf_hooks_listener listener = { .changing = changing };

/* --- the lock ----------------------------------------------------------------------- */

/* No handler may change mappings meanwhile: the hook would wait for this thread. */
void mrf_monitor_lock(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	mrf_lock_take(&lock);
	signals = before;
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

void mrf_monitor_unlock(void)
{
	sigset_t before = signals;

	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	mrf_lock_release(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mrf_monitor_pause_locked(struct mrf_monitor_pause *pause)
{
	mrf_lock_held(&lock);
	pause->signals = signals;
	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	mrf_lock_release(&lock);
}

void mrf_monitor_resume(const struct mrf_monitor_pause *pause)
{
	mrf_lock_take(&lock);
	signals = pause->signals;
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

#ifdef MRF_LOCKRANK
void mrf_monitor_held(void)
{
	mrf_lock_held(&lock);
}
#endif

void mrf_monitor_settle(void)
{
	mrf_monitor_lock();
	mrf_monitor_unlock();
}

bool mrf_monitor_usable(void)
{
	uint64_t here = atomic_load_explicit(&owner, memory_order_acquire);

	return here && mrf_fork_ours(here);
}

/* --- watches ---------------------------------------------------------------------- */

int mrf_watch_init(struct mrf_watch *watch, struct mrf_monitor_client *client)
{
	watch->client = client;
	watch->sub.len = 0;
	mrf_list_init(&watch->group);
	watch->node = mrf_itree_node_new();
	return watch->node ? 0 : -FI_ENOMEM;
}

void mrf_watch_fini(struct mrf_watch *watch)
{
	mrf_unsubscribe(&watch->sub);
	mrf_itree_node_free(watch->node);
	watch->node = NULL;
}

static uintptr_t end_of(const struct mrf_watch *watch)
{
	return watch->start + watch->len;
}

/* The first watch that overlaps, or NULL. */
static struct mrf_watch *first_watch_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *node = mrf_itree_first(&watches, start, end);

	mrf_lock_held(&lock);
	return node ? mrf_itree_value(node) : NULL;
}

static struct mrf_list *watch_group(const struct mrf_watch *watch)
{
	unsigned which = mrf_uffds_of(watch->start, end_of(watch));

	return which == MRF_UFFDS_WIDE ? &wide : &groups[which];
}

/* Arms the hooks before the calls that may have passed them unarmed are counted. */
static void enter_watch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	atomic_fetch_add(&loose, 1);
	watch->loose = true;
	atomic_fetch_add(&listener.armed, 1);
	mrf_itree_insert(&watches, watch->node, watch->start, end_of(watch), watch);
	watch->alone = false;
	if (parts.uffd && !watch->client->local)
		mrf_list_add_tail(&watch->group, watch_group(watch));
}

static void lies_in_ground_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	if (watch->loose)
		atomic_fetch_sub(&loose, 1);
	watch->loose = false;
}

static void leave_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	mrf_itree_remove(&watches, watch->node);
	mrf_list_del(&watch->group);
	atomic_fetch_sub(&listener.armed, 1);
	lies_in_ground_locked(watch);
	if (watch->alone)
		alone -= mrf_uffds_pieces(watch->start, end_of(watch));
}

/* Whatever ground is taken from it, it stays registered. */
static void stands_alone_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	if (!watch->alone)
		alone += mrf_uffds_pieces(watch->start, end_of(watch));
	watch->alone = true;
	if (!watch->loose)
		atomic_fetch_add(&loose, 1);
	watch->loose = true;
}

/* --- what is registered -------------------------------------------------------------- */

/* The lowest part of [start, end), in one chunk, that a watch or ground needs registered. */
static bool first_needed_locked(uintptr_t start, uintptr_t end, struct mrf_ground *needed)
{
	const struct mrf_watch *watch = first_watch_locked(start, end);
	bool any = mrf_ground_first(start, end, needed);

	mrf_lock_held(&lock);
	if (!watch || (any && needed->start <= watch->start))
		return any;
	*needed = (struct mrf_ground){ .start = watch->start, .end = end_of(watch) };
	return true;
}

static void release_piece_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground needed;
	uintptr_t next;
	bool any;

	mrf_lock_held(&lock);
	while (start < end) {
		any = first_needed_locked(start, end, &needed);
		next = any ? mrf_max(needed.start, start) : end;
		mrf_uffds_unregister(start, next);
		start = any ? needed.end : end;
	}
}

/* Unregisters what of [start, end) is neither watched nor ground. */
static void release_locked(uintptr_t start, uintptr_t end)
{
	uintptr_t next;

	mrf_lock_held(&lock);
	if (!parts.uffd || !mrf_monitor_usable())
		return;
	for (; start < end; start = next) {
		next = mrf_uffds_piece(start, end);
		release_piece_locked(start, next);
	}
}

/* A discarded range is registered again after a while, to hear when it is unmapped. */
static void arm_discard_locked(struct mrf_discard *entry)
{
	uintptr_t end;

	mrf_lock_held(&lock);
	if (entry->armed || (uint64_t)mrf_now_ms() - entry->at < MRF_DISCARD_MS)
		return;
	entry->armed = !mrf_uffds_register(entry->start, entry->end, &end);
}

/* --- ground -------------------------------------------------------------------------- */

/* In a set that is full, ground in which nothing is watched makes room. */
static bool make_place_locked(uintptr_t addr)
{
	struct mrf_ground old;
	unsigned i;

	mrf_lock_held(&lock);
	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (!mrf_ground_in_set(addr, i, &old))
			return true;
	}
	while (i--) {
		if (!mrf_ground_in_set(addr, i, &old) || first_watch_locked(old.start, old.end))
			continue;
		mrf_ground_remove(&old);
		release_locked(old.start, old.end);
		return true;
	}
	return false;
}

/* Takes out what lies inside. */
static void absorb_locked(const struct mrf_ground *range)
{
	struct mrf_ground other;
	unsigned i;

	mrf_lock_held(&lock);
	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (mrf_ground_in_set(range->start, i, &other) && other.start >= range->start &&
		    other.end <= range->end &&
		    (other.start != range->start || other.end != range->end))
			mrf_ground_remove(&other);
	}
}

/*
 * Hooks see it from before they are looked for. -FI_ENOSPC: there is no room for it, or it
 * cannot be had at the moment; otherwise as mrf_uffds_register.
 */
static int make_ground_locked(const struct mrf_ground *range)
{
	uintptr_t end = range->start;
	int ret = -FI_ENOSPC;

	mrf_lock_held(&lock);
	if (mrf_discard_find(&discards, range->start, range->end))
		return -FI_EINVAL;
	if (!ground_armed)
		atomic_fetch_add(&listener.armed, 1);
	ground_armed = true;
	if (!make_place_locked(range->start) || !mrf_ground_add(range))
		return -FI_ENOSPC;
	if (!parts.hooks || mrf_hooks_quiet(range->start, range->end))
		ret = mrf_uffds_join(range->start, range->end, &end);
	if (!ret) {
		absorb_locked(range);
		return 0;
	}
	mrf_ground_remove(range);
	release_locked(range->start, end);
	return ret;
}

/* What lies between the ground of a chunk and this. False: the chunk has none. */
static bool hull_locked(struct mrf_ground *hull)
{
	uintptr_t chunk = hull->start & ~(MRF_UFFD_CHUNK - 1);
	struct mrf_ground other;
	bool any = false;
	unsigned i;

	mrf_lock_held(&lock);
	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (!mrf_ground_in_set(chunk, i, &other) ||
		    (other.start & ~(MRF_UFFD_CHUNK - 1)) != chunk)
			continue;
		hull->start = mrf_min(hull->start, other.start);
		hull->end = mrf_max(hull->end, other.end);
		hull->step = mrf_max(hull->step, other.step);
		any = true;
	}
	return any;
}

static struct mrf_ground widened(const struct mrf_ground *hull, enum mrf_ground_step step)
{
	uintptr_t grain = step == MRF_GROUND_CHUNK ? MRF_UFFD_CHUNK : GRID;
	struct mrf_ground wide = *hull;

	wide.step = step;
	if (step > MRF_GROUND_GRID)
		return wide;
	wide.start &= ~(grain - 1);
	wide.end = ((wide.end - 1) | (grain - 1)) + 1;
	return wide;
}

/*
 * Makes [start, end), in one chunk, ground, and what lies around it if it is not the first
 * in its chunk. As make_ground_locked.
 */
static int found_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground hull = { .start = start, .end = end }, exact = hull, wide;
	int ret;

	mrf_lock_held(&lock);
	if (!hull_locked(&hull))
		return make_ground_locked(&exact);
	for (; hull.step < MRF_GROUND_EXACT; hull.step++) {
		wide = widened(&hull, hull.step);
		ret = make_ground_locked(&wide);
		if (!ret || ret == -FI_ENOSPC)
			return ret;
	}
	exact.step = hull.step;
	return make_ground_locked(&exact);
}

/* Has [start, end), in one chunk, reported, as ground if it can be. */
static int report_piece_locked(struct mrf_watch *watch, uintptr_t start, uintptr_t end,
			       uintptr_t *end_of_all)
{
	int ret;

	mrf_lock_held(&lock);
	if (mrf_ground_has(start, end))
		return mrf_uffds_quiet(start) ? 0 : -FI_EAGAIN;
	ret = found_locked(start, end);
	if (ret != -FI_ENOSPC)
		return ret;
	stands_alone_locked(watch);
	return mrf_uffds_register(start, end, end_of_all);
}

/* Of ground that is lost without a change, what is watched stays registered. */
static void strand_locked(const struct mrf_ground *lost)
{
	struct mrf_itree_node *node = mrf_itree_first(&watches, lost->start, lost->end);

	mrf_lock_held(&lock);
	for (; node; node = mrf_itree_next(&watches, node, lost->start, lost->end))
		stands_alone_locked(mrf_itree_value(node));
	release_locked(lost->start, lost->end);
}

/*
 * The memory changes; nothing in it is watched any more. What is left of ground stays for
 * those who watch there; if there are none, the mapping is to be whole again.
 */
static void lose_ground_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_ground range, lost;
	unsigned at = 0;

	mrf_lock_held(&lock);
	atomic_fetch_add(&loose, 1);
	while (mrf_ground_next(start, end, &at, &range)) {
		if (!first_watch_locked(range.start, range.end)) {
			mrf_ground_remove(&range);
			release_locked(range.start, range.end);
			continue;
		}
		mrf_uffds_unregister(mrf_max(start, range.start), mrf_min(end, range.end));
		if (mrf_ground_cut(&range, start, end, &lost))
			strand_locked(&lost);
	}
	atomic_fetch_sub(&loose, 1);
}

/* Gives back ground in which nothing is watched. */
static void give_ground_back_locked(void)
{
	struct mrf_ground range;
	unsigned at = 0;

	mrf_lock_held(&lock);
	while (mrf_ground_next(0, UINTPTR_MAX, &at, &range)) {
		if (first_watch_locked(range.start, range.end))
			continue;
		mrf_ground_remove(&range);
		release_locked(range.start, range.end);
	}
}

static void forget_ground(void)
{
	if (ground_armed)
		mrf_ground_clear();
	ground_armed = false;
	alone = 0;
	atomic_store(&loose, 0);
}

/* --- watching ------------------------------------------------------------------------ */

/*
 * What was not registered here is left alone: before Linux 6.15 a range can be
 * unregistered from another userfaultfd, too.
 */
static int register_locked(struct mrf_watch *watch)
{
	uintptr_t start = watch->start, end = start, next;
	int ret = 0;

	mrf_lock_held(&lock);
	if (!parts.uffd)
		return 0;
	for (; !ret && start < end_of(watch); start = next) {
		next = mrf_uffds_piece(start, end_of(watch));
		ret = report_piece_locked(watch, start, next, &end);
		end = ret ? end : next;
	}
	if (!ret) {
		if (!watch->alone)
			lies_in_ground_locked(watch);
		return 0;
	}
	leave_locked(watch);
	release_locked(watch->start, end);
	return ret;
}

bool mrf_monitor_stands_locked(const struct mrf_watch *watch)
{
	uintptr_t end = end_of(watch);

	mrf_lock_held(&lock);
	return parts.uffd && parts.hooks && mrf_uffds_piece(watch->start, end) == end &&
	       mrf_ground_has(watch->start, end);
}

int mrf_monitor_watch_locked(struct mrf_watch *watch)
{
	struct mrf_discard *entry;

	mrf_lock_held(&lock);
	if (!mrf_monitor_usable() || (parts.hooks && !mrf_hooks_in_force()))
		return -FI_ENOSYS;
	entry = mrf_discard_find(&discards, watch->start, end_of(watch));
	if (entry) {
		arm_discard_locked(entry);
		return -FI_EINVAL;
	}
	enter_watch_locked(watch);
	if (!parts.hooks || mrf_hooks_quiet(watch->start, end_of(watch)))
		return register_locked(watch);
	leave_locked(watch);
	return -FI_EINVAL;
}

void mrf_monitor_unwatch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	if (!mrf_watch_on(watch))
		return;
	leave_locked(watch);
	if (watch->alone)
		release_locked(watch->start, end_of(watch));
}

bool mrf_monitor_proves(void)
{
	return atomic_load_explicit(&proved, memory_order_relaxed);
}

bool mrf_monitor_sure(struct mrf_watch *watch)
{
	if (mrf_monitor_proves())
		return true;
	return mrf_maps_all_private(watch->start, end_of(watch)) &&
	       mrf_subscribe(&watch->sub, watch->start, watch->len);
}

/* --- how much ----------------------------------------------------------------------- */

static enum mrf_pieces_room look_for_room(void)
{
	enum mrf_pieces_room room = MRF_PIECES_FIT;

	mrf_monitor_lock();
	pieces.count = alone + mrf_ground_count();
	if (parts.uffd)
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
		give_ground_back_locked();
	mrf_monitor_unlock();
	return fit;
}

/* --- changes ---------------------------------------------------------------------- */

static void drop_watch_locked(struct mrf_watch *watch)
{
	mrf_lock_held(&lock);
	mrf_monitor_unwatch_locked(watch);
	watch->client->hit = true;
	watch->client->drop(watch);
}

static void drop_range_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_watch *watch;

	mrf_lock_held(&lock);
	while ((watch = first_watch_locked(start, end)))
		drop_watch_locked(watch);
}

void mrf_watches_tell_locked(void)
{
	mrf_lock_held(&lock);
	mrf_list_each (node, &clients) {
		struct mrf_monitor_client *client =
			mrf_list_entry(node, struct mrf_monitor_client, node);

		if (client->hit && client->dropped)
			client->dropped(client->arg);
		client->hit = false;
	}
}

/*
 * A hook calls this in the thread that is about to change the range. The first look takes
 * no lock and makes no system call. What is watched there may get ground, or lose it, before
 * or behind that look: so loose is looked at on both sides of it.
 */
static void changing(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_hit hit;
	bool tree = atomic_load(&loose);

	if (mrf_likely(!mrf_ground_touches(start, end) &&
		       ((!tree && !atomic_load(&loose)) ||
			mrf_itree_try_first(&watches, start, end, &hit) == MRF_ITREE_NONE)))
		return;
	if (atomic_load_explicit(&holder, memory_order_relaxed) == (uintptr_t)pthread_self() ||
	    !mrf_monitor_usable())
		return;
	mrf_monitor_lock();
	if (parts.hooks) {
		drop_range_locked(start, end);
		lose_ground_locked(start, end);
	}
	mrf_watches_tell_locked();
	mrf_monitor_unlock();
}

void mrf_watches_changing(uintptr_t start, uintptr_t end)
{
	if (atomic_load_explicit(&holder, memory_order_relaxed) == (uintptr_t)pthread_self() ||
	    !mrf_monitor_usable())
		return;
	mrf_monitor_lock();
	if (parts.import)
		drop_range_locked(start, end);
	mrf_watches_tell_locked();
	mrf_monitor_unlock();
}

void mrf_watches_drop_all(void)
{
	mrf_monitor_lock();
	parts.import = false;
	atomic_store_explicit(&owner, 0, memory_order_release);
	drop_range_locked(0, UINTPTR_MAX);
	mrf_watches_tell_locked();
	mrf_monitor_unlock();
}

static struct mrf_watch *first_of(struct mrf_list *group)
{
	struct mrf_list *node = mrf_list_first(group);

	return node ? mrf_list_entry(node, struct mrf_watch, group) : NULL;
}

void mrf_watches_lose_locked(unsigned uffd)
{
	struct mrf_watch *watch;

	mrf_lock_held(&lock);
	while ((watch = first_of(&groups[uffd])))
		drop_watch_locked(watch);
	mrf_list_each_safe (node, &wide) {
		watch = mrf_list_entry(node, struct mrf_watch, group);
		if (mrf_uffds_has(uffd, watch->start, end_of(watch)))
			drop_watch_locked(watch);
	}
}

void mrf_watches_change_locked(const struct mrf_uffd_event *event)
{
	uint64_t now = (uint64_t)mrf_now_ms();

	mrf_lock_held(&lock);
	drop_range_locked(event->start, event->end);
	lose_ground_locked(event->start, event->end);
	switch (event->kind) {
	case MRF_UFFD_REMOVE:
		mrf_discard_add(&discards, event->start, event->end, now);
		break;
	case MRF_UFFD_UNMAP:
		mrf_discard_unmapped(&discards, event->start, event->end, now);
		break;
	default:
		break;
	}
}

/* --- coming and going ------------------------------------------------------------- */

int mrf_watches_listen(void)
{
	return mrf_hooks_listen(&listener);
}

void mrf_watches_enter_locked(struct mrf_monitor_client *client)
{
	mrf_lock_held(&lock);
	mrf_list_add_tail(&client->node, &clients);
}

void mrf_watches_leave_locked(struct mrf_monitor_client *client)
{
	mrf_lock_held(&lock);
	mrf_list_del(&client->node);
}

static void forget_groups(void)
{
	unsigned i;

	for (i = 0; i < MRF_UFFDS; i++)
		mrf_list_init(&groups[i]);
	mrf_list_init(&wide);
	memset(&discards, 0, sizeof(discards));
	memset(&pieces, 0, sizeof(pieces));
	forget_ground();
}

void mrf_watches_start(struct mrf_monitor_parts with)
{
	unsigned half = mrf_maps_limit() / 2;

	mrf_monitor_lock();
	forget_groups();
	mrf_pieces_start(&pieces, half);
	parts = with;
	atomic_store(&proved, with.uffd);
	atomic_store_explicit(&owner, mrf_fork_here(), memory_order_release);
	mrf_monitor_unlock();
}

void mrf_watches_unregister_locked(void)
{
	struct mrf_itree_node *node;
	struct mrf_ground range;
	unsigned i = 0;

	mrf_lock_held(&lock);
	for (node = mrf_itree_first(&watches, 0, UINTPTR_MAX); node;
	     node = mrf_itree_next(&watches, node, 0, UINTPTR_MAX))
		mrf_uffds_unregister(mrf_itree_start(node), mrf_itree_end(node));
	while (mrf_ground_next(0, UINTPTR_MAX, &i, &range)) {
		mrf_uffds_unregister(range.start, range.end);
		mrf_ground_remove(&range);
	}
	for (i = 0; i < discards.count; i++) {
		struct mrf_discard *entry = &discards.entry[i];

		if (entry->armed)
			mrf_uffds_unregister(entry->start, entry->end);
		entry->armed = false;
	}
}

void mrf_watches_stop(void)
{
	struct mrf_watch *watch;

	mrf_monitor_lock();
	while ((watch = first_watch_locked(0, UINTPTR_MAX)))
		leave_locked(watch);
	if (ground_armed)
		atomic_fetch_sub(&listener.armed, 1);
	forget_ground();
	atomic_store_explicit(&owner, 0, memory_order_release);
	parts = (struct mrf_monitor_parts){ .hooks = false };
	mrf_monitor_unlock();
}

bool mrf_watches_in_child(void)
{
	bool had = atomic_exchange(&owner, 0);

	parts = (struct mrf_monitor_parts){ .hooks = false };
	mrf_list_init(&clients);
	mrf_itree_forget(&watches);
	forget_groups();
	atomic_store(&listener.armed, 0);
	atomic_store(&mrf_monitor_learning, false);
	mrf_hooks_in_child();
	/* Another thread may have had it at the time of the fork. */
	atomic_store(&lock.state, 0);
	atomic_store(&holder, 0);
	return had;
}

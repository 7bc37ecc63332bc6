/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/model/peer.h"
#include "ep/model/why.h"
#include "ep/resolve/remote.h"
#include "mr/map.h"
#include "proto/rawkey.h"

/*
 * How many of a peer's keys are remembered: applications that use up keys must not use up memory.
 */
#define MAX_REMOTES 16384

static struct mrf_map *map_of(const struct mrf_peer *peer)
{
	return peer->ep->domain->space.map;
}

/* --- parts ----------------------------------------------------------------------------- */

void mrf_remote_drop_locked(struct mrf_remote *remote)
{
	free(remote->parts);
	remote->parts = NULL;
	remote->nparts = remote->max = 0;
	remote->known = false;
}

static int make_room_for_parts_locked(struct mrf_remote *remote, unsigned want)
{
	struct mrf_part *parts;
	unsigned max = mrf_max(remote->max, 1u);

	while (max < want)
		max *= 2;
	parts = max > remote->max ? realloc(remote->parts, max * sizeof(*parts)) : remote->parts;
	if (!parts)
		return -FI_ENOMEM;
	remote->parts = parts;
	remote->max = max;
	return 0;
}

/* Returns the first of the sorted parts that ends after addr. */
static unsigned first_after_locked(const struct mrf_remote *remote, uint64_t addr)
{
	unsigned low = 0, high = remote->nparts;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		const struct mrf_part *part = &remote->parts[mid];

		if (addr >= part->addr && addr - part->addr >= part->len)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Keeps the parts sorted and without overlaps; a new part replaces those that it overlaps. */
static void insert_sorted_locked(struct mrf_remote *remote, const struct mrf_part *part)
{
	unsigned from = first_after_locked(remote, part->addr), to = from;

	if (to < remote->nparts && remote->parts[to].addr < part->addr)
		to++;
	while (to < remote->nparts && remote->parts[to].addr - part->addr < part->len)
		to++;
	memmove(&remote->parts[from + 1], &remote->parts[to],
		(remote->nparts - to) * sizeof(*part));
	remote->parts[from] = *part;
	remote->nparts = remote->nparts + 1 - (to - from);
}

static struct mrf_part from_wire(const struct mrf_peer *peer, const struct mrf_wire_seg *seg)
{
	return (struct mrf_part){ .addr = seg->pos,
				  .len = seg->len,
				  .iova = peer->target.mr_mode & FI_MR_VIRT_ADDR ? seg->pos
										 : seg->iova_off,
				  .rkey = seg->rkey };
}

static bool holds_locked(const struct mrf_peer *peer, const struct mrf_part *part)
{
	return part->epoch == (part->once ? peer->known.lease_epoch : peer->known.epoch);
}

/* Returns how many bytes from addr on, at most len, this part serves. */
static inline uint64_t served(const struct mrf_part *part, uint64_t addr, uint64_t len)
{
	uint64_t offset = addr - part->addr;

	if (addr < part->addr)
		return 0;
	if (!len)
		return offset <= part->len;
	return offset < part->len ? mrf_min(len, part->len - offset) : 0;
}

static bool usable_locked(const struct mrf_peer *peer, const struct mrf_part *part, uint64_t stamp)
{
	return holds_locked(peer, part) && (!part->once || part->once >= stamp);
}

static const struct mrf_part *find_part_locked(const struct mrf_peer *peer,
					       const struct mrf_remote *remote, uint64_t stamp,
					       uint64_t addr, uint64_t len)
{
	const struct mrf_part *part;
	unsigned i;

	/* Segments of a complete answer may overlap: the first that contains addr counts. */
	for (i = 0; remote->complete && i < remote->nparts; i++) {
		if (served(&remote->parts[i], addr, len))
			return &remote->parts[i];
	}
	if (remote->complete)
		return NULL;
	i = first_after_locked(remote, addr);
	if (i == remote->nparts)
		return NULL;
	part = &remote->parts[i];
	return usable_locked(peer, part, stamp) ? part : NULL;
}

uint64_t mrf_remote_locate_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
				  uint64_t stamp, uint64_t addr, uint64_t len, uint32_t *rkey,
				  uint64_t *remote_addr)
{
	const struct mrf_part *part = find_part_locked(peer, remote, stamp, addr, len);
	uint64_t n = part ? served(part, addr, len) : 0;

	mrf_lock_held(&peer->ep->lock);
	if (!n)
		return 0;
	*rkey = part->rkey;
	*remote_addr = part->iova + (addr - part->addr);
	return n;
}

/* The parts of a complete answer are few, and in any order. */
static uint64_t covered_complete_locked(const struct mrf_peer *peer,
					const struct mrf_remote *remote, uint64_t addr,
					uint64_t len)
{
	const struct mrf_part *part;
	uint64_t done = 0;

	while (done < len &&
	       (part = find_part_locked(peer, remote, UINT64_MAX, addr + done, len - done)))
		done += served(part, addr + done, len - done);
	return done;
}

uint64_t mrf_remote_covered_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
				   uint64_t stamp, uint64_t addr, uint64_t len)
{
	uint64_t done = 0, n;
	unsigned i;

	mrf_lock_held(&peer->ep->lock);
	if (remote->complete)
		return covered_complete_locked(peer, remote, addr, len);
	/* A peer may have many pieces: this goes from each to the next without a search. */
	for (i = first_after_locked(remote, addr); i < remote->nparts && done < len; i++) {
		const struct mrf_part *part = &remote->parts[i];

		n = usable_locked(peer, part, stamp) ? served(part, addr + done, len - done) : 0;
		if (!n)
			break;
		done += n;
	}
	return done;
}

unsigned mrf_remote_parts_locked(const struct mrf_remote *remote, uint64_t addr, uint64_t len)
{
	return len ? first_after_locked(remote, addr + (len - 1)) + 1 -
			       first_after_locked(remote, addr)
		   : 0;
}

/* --- remembering ---------------------------------------------------------------------- */

struct mrf_remote *mrf_remote_find_locked(const struct mrf_peer *peer, uint64_t key)
{
	mrf_lock_held(&peer->ep->lock);
	return mrf_idmap_find(&peer->known.remotes, key);
}

/*
 * Removes one key that no question is about; an operation that still needs it asks again. Not the
 * oldest one: of keys that are used in turn, that is always the one needed next.
 */
static void make_room_locked(struct mrf_peer *peer)
{
	size_t i;

	for (i = 0; i < peer->known.remotes.count; i++) {
		struct mrf_remote *remote =
			mrf_idmap_sweep(&peer->known.remotes, &peer->known.hand);

		if (!remote->asking && !remote->wanted) {
			mrf_idmap_remove(&peer->known.remotes, remote->key);
			mrf_remote_drop_locked(remote);
			free(remote);
			return;
		}
	}
}

static struct mrf_remote *remote_add_locked(struct mrf_peer *peer, uint64_t key)
{
	struct mrf_remote *remote;

	if (peer->known.remotes.count >= MAX_REMOTES)
		make_room_locked(peer);
	remote = calloc(1, sizeof(*remote));
	if (!remote)
		return NULL;
	remote->key = key;
	remote->peer_key = key;
	mrf_list_init(&remote->node);
	if (mrf_idmap_insert(&peer->known.remotes, key, remote)) {
		free(remote);
		return NULL;
	}
	return remote;
}

/* Takes in what the raw key says, as if it were an old answer. */
static int learn_raw_locked(struct mrf_peer *peer, struct mrf_remote *remote,
			    const struct mrf_rawkey *raw)
{
	uint32_t i;

	remote->peer_key = raw->key;
	peer->known.mapped = true;
	remote->serial = raw->serial;
	remote->space_id = raw->space_id;
	remote->found_serial = raw->serial;
	remote->complete = raw->complete;
	remote->access = remote->quick = raw->access;
	remote->event = 0; /* an answer with an event number would not be complete */
	remote->base = raw->base;
	remote->len = raw->len;
	remote->status = MRF_MR_OK;
	if (!raw->complete)
		return 0;
	if (make_room_for_parts_locked(remote, raw->nseg))
		return -FI_ENOMEM;
	for (i = 0; i < raw->nseg; i++)
		remote->parts[i] = from_wire(peer, &raw->seg[i]);
	remote->nparts = raw->nseg;
	remote->known = true;
	return 0;
}

static struct mrf_remote *no_memory(uint64_t key, struct mrf_why *why)
{
	mrf_why_set(why, FI_ENOMEM, 4106, "there is no memory to resolve key 0x%" PRIx64, key);
	return NULL;
}

/* The peer may be a new process that numbers its regions as the old one did. */
static struct mrf_remote *get_mapped_locked(struct mrf_peer *peer, uint64_t key,
					    const struct mrf_rawkey *raw, struct mrf_why *why)
{
	struct mrf_remote *remote;

	if (raw->space_id != peer->target.space_id) {
		mrf_why_set(why, FI_EKEYREJECTED, 4141,
			    "key 0x%" PRIx64 " was mapped from a raw key of another peer's domain",
			    key);
		return NULL;
	}
	remote = mrf_remote_find_locked(peer, key);
	if (remote)
		return remote;
	remote = remote_add_locked(peer, key);
	if (!remote || learn_raw_locked(peer, remote, raw))
		return no_memory(key, why);
	return remote;
}

struct mrf_remote *mrf_remote_get_locked(struct mrf_peer *peer, uint64_t key, struct mrf_why *why)
{
	bool maybe = mrf_map_maybe(map_of(peer), key);
	struct mrf_remote *remote;
	struct mrf_rawkey raw;

	mrf_lock_held(&peer->ep->lock);
	if (maybe && mrf_map_get(map_of(peer), key, &raw))
		return get_mapped_locked(peer, key, &raw, why);
	if (maybe && mrf_map_was(map_of(peer), key)) {
		mrf_why_set(why, FI_EKEYREJECTED, 4142,
			    "key 0x%" PRIx64 " was unmapped with fi_mr_unmap_key", key);
		return NULL;
	}
	if (peer->target.mr_mode & FI_MR_RAW) {
		mrf_why_set(why, FI_EKEYREJECTED, 4140,
			    "key 0x%" PRIx64 ": the peer's domain has FI_MR_RAW, so only "
			    "keys from fi_mr_map_raw reach its regions",
			    key);
		return NULL;
	}
	remote = mrf_remote_find_locked(peer, key);
	if (!remote)
		remote = remote_add_locked(peer, key);
	return remote ? remote : no_memory(key, why);
}

/* --- answers -------------------------------------------------------------------------- */

/* Do the parts of earlier answers stay valid beside those of this one? */
static bool adds_to_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
			   const struct mrf_answer *answer)
{
	return remote->known && !remote->complete && answer->status != MRF_MR_CLOSED &&
	       !(answer->flags & MRF_ANSWER_COMPLETE) && answer->serial == remote->found_serial &&
	       remote->nparts + answer->nseg < peer->ep->max_parts;
}

static void drop_what_holds_no_longer_locked(const struct mrf_peer *peer, struct mrf_remote *remote)
{
	unsigned i, n = 0;

	for (i = 0; i < remote->nparts; i++) {
		if (holds_locked(peer, &remote->parts[i]))
			remote->parts[n++] = remote->parts[i];
	}
	remote->nparts = n;
}

static int take_parts_locked(struct mrf_peer *peer, struct mrf_remote *remote,
			     const struct mrf_answer *answer)
{
	uint32_t i;

	if (make_room_for_parts_locked(remote, remote->nparts + answer->nseg + 1))
		return -FI_ENOMEM;
	for (i = 0; i < answer->nseg; i++) {
		struct mrf_part part = from_wire(peer, &answer->seg[i]);

		part.once = remote->once ? answer->cookie : 0;
		part.epoch = remote->once ? peer->known.lease_epoch : peer->known.epoch;
		if (remote->complete)
			remote->parts[remote->nparts++] = part;
		else if (part.len)
			insert_sorted_locked(remote, &part);
	}
	return 0;
}

/*
 * The answer allows the access but shows no part of the region: an error is better than asking for
 * ever.
 */
static bool shows_nothing_locked(const struct mrf_peer *peer, const struct mrf_remote *remote)
{
	return !remote->complete && remote->status == MRF_MR_OK && remote->ask.len &&
	       !mrf_remote_covered_locked(peer, remote, remote->cookie, remote->ask.addr,
					  remote->ask.len);
}

int mrf_remote_learn_locked(struct mrf_peer *peer, struct mrf_remote *remote,
			    const struct mrf_answer *answer)
{
	mrf_lock_held(&peer->ep->lock);
	if (adds_to_locked(peer, remote, answer))
		drop_what_holds_no_longer_locked(peer, remote);
	else
		mrf_remote_drop_locked(remote);
	remote->complete = answer->flags & MRF_ANSWER_COMPLETE;
	remote->once = !remote->complete && (answer->flags & MRF_ANSWER_ONCE);
	remote->cookie = answer->cookie;
	remote->answered = remote->ask;
	remote->status = answer->status;
	remote->found_serial = answer->serial;
	/*
	 * What a raw key grants is known for good, and an answer about a closed region grants
	 * nothing. An open region grants something, whatever is wrong with the range.
	 */
	if (!remote->serial || answer->access)
		remote->access = answer->access;
	remote->staged = answer->flags & MRF_ANSWER_STAGED;
	remote->quick = remote->staged ? 0 : remote->access;
	remote->event = peer->target.events ? answer->event : 0;
	remote->base = answer->base;
	remote->len = answer->len;
	if (take_parts_locked(peer, remote, answer)) {
		mrf_remote_drop_locked(remote);
		return -FI_ENOMEM;
	}
	if (shows_nothing_locked(peer, remote))
		remote->status = MRF_MR_OUTSIDE;
	remote->known = true;
	return 0;
}

/* --- forgetting ------------------------------------------------------------------------ */

/* Does the part have any of these bytes? Neither passes the end of the address space. */
static bool meets_gone(const struct mrf_part *part, const struct mrf_wire_gone *gone)
{
	return part->addr < gone->pos ? gone->pos - part->addr < part->len
				      : part->addr - gone->pos < gone->len;
}

static void drop_gone_locked(struct mrf_remote *remote, const struct mrf_wire_gone *gone)
{
	unsigned from, to;

	if (remote->peer_key != gone->key || remote->complete || !remote->nparts)
		return;
	from = to = first_after_locked(remote, gone->pos);
	while (to < remote->nparts && meets_gone(&remote->parts[to], gone))
		to++;
	memmove(&remote->parts[from], &remote->parts[to],
		(remote->nparts - to) * sizeof(*remote->parts));
	remote->nparts -= to - from;
}

static void drop_each_gone_locked(void *remote, void *arg)
{
	const struct mrf_forget *forget = arg;
	uint32_t i;

	for (i = 0; i < forget->count; i++)
		drop_gone_locked(remote, &forget->gone[i]);
}

void mrf_remote_gone_locked(struct mrf_peer *peer, struct mrf_forget *forget)
{
	struct mrf_remote *remote;
	uint32_t i;

	mrf_lock_held(&peer->ep->lock);
	if (!forget->count) {
		peer->known.epoch++;
		return;
	}
	/* A mapped key has another number here, by which it cannot be found. */
	if (mrf_unlikely(peer->known.mapped)) {
		mrf_idmap_each(&peer->known.remotes, drop_each_gone_locked, forget);
		return;
	}
	for (i = 0; i < forget->count; i++) {
		remote = mrf_remote_find_locked(peer, forget->gone[i].key);
		if (remote)
			drop_gone_locked(remote, &forget->gone[i]);
	}
}

static void forget_one_locked(void *value, void *all)
{
	struct mrf_remote *remote = value;

	if (all || remote->staged)
		mrf_remote_drop_locked(remote);
	remote->staged = false;
}

void mrf_remote_forget_locked(struct mrf_peer *peer, bool all)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_idmap_each(&peer->known.remotes, forget_one_locked, all ? peer : NULL);
}

static void free_one_locked(void *value, void *arg)
{
	(void)arg;
	mrf_remote_drop_locked(value);
	free(value);
}

void mrf_remote_fini_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_idmap_each(&peer->known.remotes, free_one_locked, NULL);
	mrf_idmap_fini(&peer->known.remotes);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of an operation, and where its bytes go. Whether it is allowed is judge.c's. */
#include <inttypes.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "ep/resolve/ask.h"
#include "ep/resolve/judge.h"
#include "ep/resolve/resolve.h"
#include "mr/map.h"

/* --- keys of an operation ----------------------------------------------------------------- */

/* What is known of the region behind the key; NULL: nothing. */
static const struct mrf_remote *known_locked(const struct mrf_op *op, uint64_t key)
{
	const struct mrf_remote *remote = mrf_remote_find_locked(op->peer, key);

	return remote && remote->known ? remote : NULL;
}

/* How many bytes of it the peer's kernel checks at a time. */
static uint64_t most_at_once(const struct mrf_op *op)
{
	switch (op->type->kind) {
	case MRF_OP_ATOMIC:
		return op->atomic.size;
	case MRF_OP_READ:
	case MRF_OP_WRITE:
	case MRF_OP_RPC:
	case MRF_OP_SEND:
		break;
	}
	return mrf_vdev_limits(op->peer->ep->domain->vdev)->max_msg_size;
}

/* Does the key carry its rkey, and does one work request do it all? Then the kernel checks it. */
static bool direct_locked(const struct mrf_op *op, const struct fi_rma_iov *rma,
			  struct mrf_key_direct *key)
{
	const struct mrf_remote *remote = known_locked(op, rma->key);

	/*
	 * Another operation may have got an answer since this one was asked for: operations behind a
	 * refused access need not each break a connection to learn the same.
	 */
	if (op->ask_first || (remote && mrf_judge_fresh_locked(op, remote)))
		return false;
	return op->nrma == 1 && op->total && op->total <= most_at_once(op) &&
	       mrf_key_unpack(op->peer->target.mr_mode, rma->key, key);
}

/* Has the operation collected a lease for the first bytes of any of its buffers? */
static bool holds_leases_locked(const struct mrf_op *op)
{
	const struct fi_rma_iov *rma;

	for (rma = op->rma; rma < op->rma + op->nrma; rma++) {
		const struct mrf_remote *remote = known_locked(op, rma->key);

		if (rma->len && remote && remote->once &&
		    mrf_remote_covered_locked(op->peer, remote, op->stamp, rma->addr, 1))
			return true;
	}
	return false;
}

/* Returns the number of known parts to all buffers of an operation that are in this region. */
static unsigned count_ways_locked(const struct mrf_op *op, const struct mrf_remote *remote)
{
	const struct fi_rma_iov *rma;
	unsigned sum = 0;

	for (rma = op->rma; rma < op->rma + op->nrma; rma++) {
		if (rma->key == remote->key)
			sum += mrf_remote_parts_locked(
				remote, rma->addr,
				mrf_remote_covered_locked(op->peer, remote, op->stamp, rma->addr,
							  rma->len));
	}
	return sum;
}

/* Does the operation need more parts of this region than can be remembered? */
static bool too_many_locked(const struct mrf_op *op, const struct mrf_remote *remote)
{
	unsigned max = op->peer->ep->max_parts;

	/* Another answer might exceed that: the known parts would be dropped to make room. */
	return mrf_unlikely(remote->nparts + MRF_PROTO_MAX_SEG >= max) &&
	       count_ways_locked(op, remote) + 2 * MRF_PROTO_MAX_SEG >= max;
}

static enum mrf_resolved resolve_one_locked(struct mrf_op *op, const struct fi_rma_iov *rma,
					    struct mrf_why *why)
{
	/* The next answer replaces one about an empty access, so the operation remembers it. */
	uint8_t empty = (uint8_t)(!rma->len << (rma - op->rma));
	struct mrf_key_direct key;
	struct mrf_remote *remote;
	enum mrf_verdict verdict;
	uint64_t done;

	if (direct_locked(op, rma, &key) || op->empty_known & empty)
		return MRF_RESOLVED;
	remote = mrf_remote_get_locked(op->peer, rma->key, why);
	if (!remote)
		return MRF_RESOLVE_FAIL;
	/* A raw key stands for one registration, whose rights never change. */
	if (remote->serial && !remote->known && !mrf_judge_grants_locked(op, remote, why))
		return MRF_RESOLVE_FAIL;
	verdict = mrf_judge_locked(op, remote, rma, &done, why);
	if (verdict == MRF_GOOD) {
		op->empty_known |= empty;
		return MRF_RESOLVED;
	}
	if (verdict == MRF_BAD && mrf_judge_fresh_locked(op, remote))
		return MRF_RESOLVE_FAIL;
	if (mrf_unlikely(too_many_locked(op, remote))) {
		mrf_why_set(why, FI_EMSGSIZE, 4147,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %zu: the peer has this memory in "
			    "too many pieces for one access",
			    rma->key, rma->addr, rma->len);
		return MRF_RESOLVE_FAIL;
	}
	/*
	 * Leases end together, and an operation is posted when it has all that it needs. So one
	 * that has begun to collect leases goes on, for all of its buffers, unless they are too many.
	 */
	if (!remote->once || op->peer->known.leases < MRF_LEASES || holds_leases_locked(op))
		mrf_ask_want_locked(op->peer, remote, rma->addr + done, rma->len - done,
				    op->broken.refused > MRF_OP_REFUSED_KEPT);
	return MRF_RESOLVE_WAIT;
}

static bool refused_too_often_locked(const struct mrf_op *op)
{
	const struct mrf_remote *remote;

	if (mrf_likely(op->broken.refused <= MRF_OP_REFUSED))
		return false;
	remote = mrf_remote_find_locked(op->peer, op->rma[0].key);
	return !remote || remote->complete || op->broken.refused > MRF_OP_REFUSED_ON_DEMAND;
}

enum mrf_resolved mrf_resolve_op_locked(struct mrf_op *op, struct mrf_why *why)
{
	enum mrf_resolved all = MRF_RESOLVED;
	int i;

	mrf_lock_held(&op->peer->ep->lock);
	if (op->resolved)
		return MRF_RESOLVED;
	if (refused_too_often_locked(op)) {
		mrf_why_set(why, FI_EACCES, 4107,
			    "key 0x%" PRIx64
			    ": the peer's kernel refused the access %u times although "
			    "the peer's library would allow it",
			    op->rma[0].key, op->broken.refused);
		return MRF_RESOLVE_FAIL;
	}
	for (i = 0; i < op->nrma; i++) {
		enum mrf_resolved one = resolve_one_locked(op, &op->rma[i], why);

		if (one == MRF_RESOLVE_FAIL)
			return one;
		if (one == MRF_RESOLVE_WAIT)
			all = one;
	}
	op->resolved = all == MRF_RESOLVED;
	return all;
}

/* Finds the remote buffer with byte *from of the operation; *from: the offset in it. */
static const struct fi_rma_iov *piece_rma_locked(const struct mrf_op *op, uint64_t *from)
{
	const struct fi_rma_iov *rma = op->rma;

	while (*from >= rma->len && rma < &op->rma[op->nrma - 1])
		*from -= (rma++)->len;
	return rma;
}

bool mrf_resolve_piece_locked(const struct mrf_op *op, uint64_t from, struct mrf_piece *piece)
{
	const struct fi_rma_iov *rma = piece_rma_locked(op, &from);
	struct mrf_key_direct key;
	const struct mrf_remote *remote;

	mrf_lock_held(&op->peer->ep->lock);
	if (direct_locked(op, rma, &key)) {
		*piece = (struct mrf_piece){ .len = rma->len - from,
					     .addr = key.iova_base + rma->addr + from,
					     .rkey = key.rkey };
		return true;
	}
	remote = known_locked(op, rma->key);
	if (!remote)
		return false;
	piece->staged = remote->staged;
	piece->len = mrf_remote_locate_locked(op->peer, remote, op->stamp, rma->addr + from,
					      rma->len - from, &piece->rkey, &piece->addr);
	return piece->len;
}

bool mrf_resolve_request_locked(const struct mrf_op *op, uint64_t from, struct mrf_request *request)
{
	const struct fi_rma_iov *rma = piece_rma_locked(op, &from);
	const struct mrf_remote *remote;
	struct mrf_key_direct key;

	mrf_lock_held(&op->peer->ep->lock);
	request->key = rma->key;
	request->serial = 0;
	request->addr = rma->addr + from;
	request->len = rma->len - from;
	if (direct_locked(op, rma, &key))
		return true;
	remote = known_locked(op, rma->key);
	if (!remote)
		return false;
	request->key = remote->peer_key;
	/* The registration that the answer is about: its successor may have other bounds. */
	request->serial = remote->found_serial;
	return true;
}

/* The event number of a remote buffer's region; 0: none. False: the key is not known. */
static bool event_of_locked(const struct mrf_op *op, const struct fi_rma_iov *rma, uint32_t *event)
{
	const struct mrf_remote *remote;
	struct mrf_key_direct key;

	*event = 0;
	if (direct_locked(op, rma, &key))
		return true;
	remote = known_locked(op, rma->key);
	if (!remote)
		return false;
	*event = remote->event;
	return true;
}

bool mrf_resolve_staged_locked(const struct mrf_op *op, uint64_t from)
{
	const struct fi_rma_iov *rma = piece_rma_locked(op, &from);
	const struct mrf_remote *remote = known_locked(op, rma->key);

	mrf_lock_held(&op->peer->ep->lock);
	return remote && remote->staged;
}

uint32_t mrf_resolve_number_locked(const struct mrf_op *op, uint64_t from)
{
	uint32_t number;

	mrf_lock_held(&op->peer->ep->lock);
	return event_of_locked(op, piece_rma_locked(op, &from), &number) ? number : 0;
}

bool mrf_resolve_event_locked(const struct mrf_op *op, uint64_t upto, uint32_t *event)
{
	const struct fi_rma_iov *rma = op->rma, *end = &op->rma[op->nrma];
	uint32_t later;

	mrf_lock_held(&op->peer->ep->lock);
	while (upto > rma->len)
		upto -= (rma++)->len;
	if (upto < rma->len) {
		*event = 0;
		return true;
	}
	if (!event_of_locked(op, rma, event))
		return false;
	/* The event number goes once to each region, with the last bytes that go there. */
	while (*event && ++rma < end) {
		if (!rma->len)
			continue;
		if (!event_of_locked(op, rma, &later))
			return false;
		if (later == *event)
			*event = 0;
	}
	return true;
}

bool mrf_resolve_cached_locked(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			       uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr,
			       uint32_t *event)
{
	const struct mrf_map *map = peer->ep->domain->space.map;
	const struct mrf_remote *remote = mrf_remote_find_locked(peer, key);

	mrf_lock_held(&peer->ep->lock);
	if (!remote || !remote->known || !(remote->quick & mrf_kind_remote(kind)))
		return false;
	if (mrf_unlikely(remote->serial) &&
	    (!mrf_map_live(map, key) || remote->space_id != peer->target.space_id))
		return false;
	*event = mrf_kind_changes(kind) ? remote->event : 0;
	return mrf_remote_locate_locked(peer, remote, UINT64_MAX, addr, len, rkey, remote_addr) ==
	       len;
}

void mrf_resolve_forget_locked(struct mrf_op *op)
{
	int i;

	mrf_lock_held(&op->peer->ep->lock);
	for (i = 0; i < op->nrma; i++) {
		struct mrf_remote *remote = mrf_remote_find_locked(op->peer, op->rma[i].key);

		if (remote)
			mrf_remote_drop_locked(remote);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May an access be, and where does it go?
 *
 * A refusal is only ever decided by an answer that is younger than the operation: the
 * cookie of a question is the endpoint's clock when it was asked. An older answer may
 * speak of a region that was replaced since. An answer that allows is used whatever its
 * age, because the kernel contradicts it if it is out of date. rxe does not check empty
 * accesses at all, so they always need a fresh answer.
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "ep/resolve/ask.h"
#include "ep/resolve/resolve.h"
#include "mr/map.h"

static bool peer_virt(const struct mrf_peer *peer)
{
	return peer->mr_mode & FI_MR_VIRT_ADDR;
}

/* --- may it be? ------------------------------------------------------------------------- */

#define FAIL(...) (mrf_why_set(__VA_ARGS__), false)

/* What is wrong with the region, whatever bytes of it are meant. */
static bool region_ok(const struct mrf_remote *remote, struct mrf_why *why)
{
	switch (remote->status) {
	case MRF_MR_CLOSED:
		return FAIL(why, FI_EKEYREJECTED, 4102,
			    "key 0x%" PRIx64 ": its region was closed", remote->key);
	case MRF_MR_DISABLED:
		return FAIL(why, FI_EACCES, 4103,
			    "key 0x%" PRIx64 ": its region is not enabled", remote->key);
	case MRF_MR_NOT_BOUND:
		return FAIL(why, FI_EACCES, 4143,
			    "key 0x%" PRIx64 ": its region is not bound to the endpoint that "
			    "was addressed (FI_MR_ENDPOINT)", remote->key);
	case MRF_MR_OK:
	case MRF_MR_OUTSIDE:
	case MRF_MR_NOT_REFRESHED:
	case MRF_MR_NOT_MAPPED:
	case MRF_MR_NO_ROOM:
		return true;
	default:
		return FAIL(why, FI_EKEYREJECTED, 4101,
			    "key 0x%" PRIx64 " is unknown: the peer has no such region",
			    remote->key);
	}
}

static bool bounds_fail(const struct mrf_peer *peer, const struct mrf_remote *remote,
			const struct fi_rma_iov *rma, struct mrf_why *why)
{
	bool virt = peer_virt(peer);
	const char *hint = "";
	uint64_t base = virt ? remote->base : 0, end = base + remote->len;
	uint64_t past = rma->len - (end - rma->addr);

	if (virt && mrf_range_inside(rma->addr, rma->len, 0, remote->len))
		hint = "; this looks like an offset, but the peer's domain takes virtual "
		       "addresses (FI_MR_VIRT_ADDR)";
	else if (!virt && mrf_range_inside(rma->addr, rma->len, remote->base, remote->len))
		hint = "; this looks like an address, but the peer's domain takes "
		       "offsets";
	if (remote->nways <= 1 && rma->addr >= base && rma->addr <= end)
		return FAIL(why, FI_EACCES, 4105,
			    "key 0x%" PRIx64 ": %" PRIu64 " byte%s past the end: 0x%" PRIx64
			    " + %zu in a region of %" PRIu64 " bytes at 0x%" PRIx64 "%s",
			    remote->key, past, past == 1 ? "" : "s", rma->addr, rma->len,
			    remote->len, base, hint);
	return FAIL(why, FI_EACCES, 4105,
		    "key 0x%" PRIx64 ": out of bounds: 0x%" PRIx64 " + %zu is outside the region "
		    "of %" PRIu64 " bytes at 0x%" PRIx64 "%s", remote->key, rma->addr, rma->len,
		    remote->len, base, hint);
}

/* What is wrong with these bytes of a region that is pinned on demand. */
static bool range_fail(const struct mrf_peer *peer, const struct mrf_remote *remote,
		       const struct fi_rma_iov *rma, struct mrf_why *why)
{
	const struct mrf_range *range = &remote->answered;

	switch (remote->status) {
	case MRF_MR_NOT_REFRESHED:
		return FAIL(why, FI_EACCES, 4144,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %" PRIu64 ": no fi_mr_refresh has "
			    "covered these bytes, which were not there when the region was "
			    "created (the peer's domain has FI_MR_MMU_NOTIFY)",
			    remote->key, range->addr, range->len);
	case MRF_MR_NOT_MAPPED:
		return FAIL(why, FI_EFAULT, 4145,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %" PRIu64
			    ": the peer has no memory there, or not with the rights that "
			    "the region grants",
			    remote->key, range->addr, range->len);
	case MRF_MR_NO_ROOM:
		return FAIL(why, FI_ENOMEM, 4146,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %" PRIu64 ": the peer cannot pin "
			    "these bytes: its memlock limit, regions or file descriptors are "
			    "used up, or it has no /proc; its own log says which",
			    remote->key, range->addr, range->len);
	default:
		return bounds_fail(peer, remote, rma, why);
	}
}

static bool access_ok(const struct mrf_op *op, const struct mrf_remote *remote,
		      struct mrf_why *why)
{
	uint64_t right = op->type->kind == MRF_OP_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;

	/* Raw keys do not tell; answers do. */
	if (mrf_unlikely(op->type->kind == MRF_OP_ATOMIC && remote->known &&
			 remote->cookie && (remote->access & right) &&
			 !(remote->access & FI_ATOMIC)))
		return FAIL(why, FI_EOPNOTSUPP, 4258,
			    "key 0x%" PRIx64 ": the peer's domain was opened without FI_ATOMIC",
			    remote->key);
	if (remote->access & right)
		return true;
	return FAIL(why, FI_EACCES, 4104, "key 0x%" PRIx64 ": its region was registered without %s",
		    remote->key, right == FI_REMOTE_READ ? "FI_REMOTE_READ" : "FI_REMOTE_WRITE");
}

/* --- what an answer says of an operation ------------------------------------------------ */

enum verdict {
	GOOD,
	BAD,  /* why says so */
	LACKS /* *done bytes are known, the rest has to be asked for */
};

static bool is_fresh(const struct mrf_op *op, const struct mrf_remote *remote)
{
	return remote->cookie >= op->stamp;
}

/* The last question was about bytes of this access, so what is wrong with them is wrong here. */
static bool concerns(const struct mrf_remote *remote, const struct fi_rma_iov *rma)
{
	const struct mrf_range *range = &remote->answered;

	if (!rma->len || !range->len)
		return range->addr == rma->addr && range->len == rma->len;
	return range->addr >= rma->addr && range->addr - rma->addr < rma->len &&
	       range->len <= rma->len - (range->addr - rma->addr);
}

static enum verdict judge_complete(const struct mrf_op *op, const struct mrf_remote *remote,
				   const struct fi_rma_iov *rma, struct mrf_why *why)
{
	uint64_t where;
	uint32_t rkey;
	bool inside;

	if (rma->len)
		inside = mrf_range_ok(rma->addr, rma->len) &&
			 mrf_remote_covered(op->peer, remote, op->stamp, rma->addr,
					    rma->len) == rma->len;
	else
		inside = mrf_remote_locate(op->peer, remote, op->stamp, rma->addr, 0, &rkey,
					   &where);
	if (!inside) {
		bounds_fail(op->peer, remote, rma, why);
		return BAD;
	}
	/* The kernel checks bytes, not their absence: an empty access needs a fresh answer. */
	return rma->len || is_fresh(op, remote) ? GOOD : LACKS;
}

static enum verdict judge_on_demand(const struct mrf_op *op, const struct mrf_remote *remote,
				    const struct fi_rma_iov *rma, uint64_t *done,
				    struct mrf_why *why)
{
	bool fresh = is_fresh(op, remote);

	if (fresh && concerns(remote, rma) && remote->status != MRF_MR_OK) {
		range_fail(op->peer, remote, rma, why);
		return BAD;
	}
	if (!rma->len)
		return fresh && concerns(remote, rma) ? GOOD : LACKS;
	*done = mrf_remote_covered(op->peer, remote, op->stamp, rma->addr, rma->len);
	return *done == rma->len ? GOOD : LACKS;
}

static enum verdict judge(const struct mrf_op *op, const struct mrf_remote *remote,
			  const struct fi_rma_iov *rma, uint64_t *done, struct mrf_why *why)
{
	*done = 0;
	if (!remote->known)
		return LACKS;
	if (!region_ok(remote, why) || !access_ok(op, remote, why))
		return BAD;
	return remote->complete ? judge_complete(op, remote, rma, why) :
				  judge_on_demand(op, remote, rma, done, why);
}

/* --- keys of an operation ----------------------------------------------------------------- */

/*
 * An answer for another operation that came after this one was asked for: what waited behind
 * a refused access need not break a connection each to learn the same.
 */
static bool answered(const struct mrf_op *op, uint64_t key)
{
	const struct mrf_remote *remote = mrf_remote_find(op->peer, key);

	return remote && remote->known && is_fresh(op, remote);
}

/* The key carries its rkey, and one work request does it all: the kernel checks. */
static bool direct(const struct mrf_op *op, const struct fi_rma_iov *rma,
		   struct mrf_key_direct *key)
{
	/* Nor are several elements: the kernel would check, and do, them one by one. */
	uint64_t max =
		op->type->kind == MRF_OP_ATOMIC
			? op->atomic.size
			: mrf_vdev_limits(op->peer->ep->domain->vdev)->max_msg_size;

	return !op->ask_first && !answered(op, rma->key) && op->nrma == 1 && op->total &&
	       op->total <= max &&
	       mrf_key_unpack(op->peer->mr_mode, rma->key, key);
}

/* Refused so often, an operation does better with pins of its own. */
#define REFUSED_KEPT 2

/* An answer about no bytes is gone with the next one; the operation remembers it. */
static bool empty_and_known(const struct mrf_op *op, const struct fi_rma_iov *rma)
{
	return !rma->len && (op->empty_known >> (rma - op->rma) & 1);
}

/* Has a lease for the first bytes of any of its buffers been collected? */
static bool holds_leases(const struct mrf_op *op)
{
	const struct fi_rma_iov *rma;

	for (rma = op->rma; rma < op->rma + op->nrma; rma++) {
		const struct mrf_remote *remote = mrf_remote_find(op->peer, rma->key);

		if (rma->len && remote && remote->known && remote->once &&
		    mrf_remote_covered(op->peer, remote, op->stamp, rma->addr, 1))
			return true;
	}
	return false;
}

/*
 * Leases end together, and an operation is posted when it has all that it needs: one that has
 * begun to collect some goes on, for whichever of its buffers. too_many ends it.
 */
static bool may_ask(const struct mrf_op *op, const struct mrf_remote *remote)
{
	return !remote->once || op->peer->leases < MRF_LEASES || holds_leases(op);
}

/* Ways that are known of all buffers of an operation that are in this region. */
static unsigned count_ways(const struct mrf_op *op, const struct mrf_remote *remote)
{
	const struct fi_rma_iov *rma;
	unsigned sum = 0;

	for (rma = op->rma; rma < op->rma + op->nrma; rma++) {
		if (rma->key == remote->key)
			sum += mrf_remote_ways(remote, rma->addr,
					       mrf_remote_covered(op->peer, remote, op->stamp,
								  rma->addr, rma->len));
	}
	return sum;
}

/* Needs the operation more ways of this region than can be remembered? */
static bool too_many(const struct mrf_op *op, const struct mrf_remote *remote)
{
	return mrf_unlikely(mrf_remote_is_full(remote)) &&
	       count_ways(op, remote) + 2 * MRF_PROTO_MAX_SEG >= mrf_remote_max_ways;
}

static enum mrf_resolved resolve_one(struct mrf_op *op, const struct fi_rma_iov *rma,
				     struct mrf_why *why)
{
	struct mrf_key_direct key;
	struct mrf_remote *remote;
	enum verdict verdict;
	uint64_t done;

	if (direct(op, rma, &key) || empty_and_known(op, rma))
		return MRF_RESOLVED;
	remote = mrf_remote_get(op->peer, rma->key, why);
	if (!remote)
		return MRF_RESOLVE_FAIL;
	/* A raw key is of one registration, whose rights are for good. */
	if (remote->serial && !remote->known && !access_ok(op, remote, why))
		return MRF_RESOLVE_FAIL;
	verdict = judge(op, remote, rma, &done, why);
	if (verdict == GOOD) {
		op->empty_known |= (uint8_t)(!rma->len << (rma - op->rma));
		return MRF_RESOLVED;
	}
	if (verdict == BAD && is_fresh(op, remote))
		return MRF_RESOLVE_FAIL;
	if (mrf_unlikely(too_many(op, remote))) {
		mrf_why_set(why, FI_EMSGSIZE, 4147,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %zu: the peer has this memory in "
			    "too many pieces for one access", rma->key, rma->addr, rma->len);
		return MRF_RESOLVE_FAIL;
	}
	if (may_ask(op, remote))
		mrf_ask_want(op->peer, remote, rma->addr + done, rma->len - done,
			     op->refused > REFUSED_KEPT);
	return MRF_RESOLVE_WAIT;
}

/*
 * An operation that the kernel keeps refusing although each answer said that it may be: the
 * region comes and goes faster than we ask, or answer and kernel disagree. Memory that is
 * pinned on demand may move often; that is no reason to give up.
 */
#define MAX_REFUSED 8
#define MAX_REFUSED_ON_DEMAND 200

static bool refused_too_often(const struct mrf_op *op)
{
	const struct mrf_remote *remote;

	if (mrf_likely(op->refused <= MAX_REFUSED))
		return false;
	remote = mrf_remote_find(op->peer, op->rma[0].key);
	return !remote || remote->complete || op->refused > MAX_REFUSED_ON_DEMAND;
}

enum mrf_resolved mrf_resolve_op(struct mrf_op *op, struct mrf_why *why)
{
	enum mrf_resolved all = MRF_RESOLVED;
	int i;

	if (op->resolved)
		return MRF_RESOLVED;
	if (refused_too_often(op)) {
		mrf_why_set(why, FI_EACCES, 4107,
			    "key 0x%" PRIx64
			    ": the peer's kernel refused the access %u times although "
			    "the peer's library would allow it",
			    op->rma[0].key, op->refused);
		return MRF_RESOLVE_FAIL;
	}
	for (i = 0; i < op->nrma; i++) {
		enum mrf_resolved one = resolve_one(op, &op->rma[i], why);

		if (one == MRF_RESOLVE_FAIL)
			return one;
		if (one == MRF_RESOLVE_WAIT)
			all = one;
	}
	op->resolved = all == MRF_RESOLVED;
	return all;
}

/* The remote buffer that byte *from of the operation is in; *from: where in it. */
static const struct fi_rma_iov *rma_at(const struct mrf_op *op, uint64_t *from)
{
	const struct fi_rma_iov *rma = op->rma;

	while (*from >= rma->len && rma < &op->rma[op->nrma - 1])
		*from -= (rma++)->len;
	return rma;
}

bool mrf_resolve_piece(const struct mrf_op *op, uint64_t from, uint32_t *rkey,
		       uint64_t *remote_addr, uint64_t *len)
{
	const struct fi_rma_iov *rma = rma_at(op, &from);
	struct mrf_key_direct key;
	const struct mrf_remote *remote;

	if (direct(op, rma, &key)) {
		*rkey = key.rkey;
		*remote_addr = key.iova_base + rma->addr + from;
		*len = rma->len - from;
		return true;
	}
	remote = mrf_remote_find(op->peer, rma->key);
	if (!remote || !remote->known)
		return false;
	*len = mrf_remote_locate(op->peer, remote, op->stamp, rma->addr + from,
				 rma->len - from, rkey, remote_addr);
	return *len;
}

bool mrf_resolve_request(const struct mrf_op *op, uint64_t from, struct mrf_request *request)
{
	const struct fi_rma_iov *rma = rma_at(op, &from);
	const struct mrf_remote *remote;
	struct mrf_key_direct key;

	request->key = rma->key;
	request->serial = 0;
	request->addr = rma->addr + from;
	request->len = rma->len - from;
	if (direct(op, rma, &key))
		return true;
	remote = mrf_remote_find(op->peer, rma->key);
	if (!remote || !remote->known)
		return false;
	request->key = remote->peer_key;
	/* The registration that was answered for: its successor may have other bounds. */
	request->serial = remote->instance;
	return true;
}

/* The number of a remote buffer's region; 0: it has none. False: the key is not known. */
static bool event_of(const struct mrf_op *op, const struct fi_rma_iov *rma, uint32_t *event)
{
	const struct mrf_remote *remote;
	struct mrf_key_direct key;

	*event = 0;
	if (direct(op, rma, &key))
		return true;
	remote = mrf_remote_find(op->peer, rma->key);
	if (!remote || !remote->known)
		return false;
	*event = remote->event;
	return true;
}

uint32_t mrf_resolve_number(const struct mrf_op *op, uint64_t from)
{
	uint32_t number;

	return event_of(op, rma_at(op, &from), &number) ? number : 0;
}

bool mrf_resolve_event(const struct mrf_op *op, uint64_t upto, uint32_t *event)
{
	const struct fi_rma_iov *rma = op->rma, *end = &op->rma[op->nrma];
	uint32_t later;

	while (upto > rma->len)
		upto -= (rma++)->len;
	if (upto < rma->len) {
		*event = 0;
		return true;
	}
	if (!event_of(op, rma, event))
		return false;
	/* Once for each region, when all that goes there is on its way. */
	while (*event && ++rma < end) {
		if (!rma->len)
			continue;
		if (!event_of(op, rma, &later))
			return false;
		if (later == *event)
			*event = 0;
	}
	return true;
}

bool mrf_resolve_cached(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr,
			uint32_t *event)
{
	const struct mrf_map *map = peer->ep->domain->space.map;
	const struct mrf_remote *remote = mrf_remote_find(peer, key);

	if (!remote || !remote->known ||
	    !(remote->access & (kind == MRF_OP_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE)))
		return false;
	if (mrf_unlikely(remote->serial) &&
	    (!mrf_map_live(map, key) || remote->space_id != peer->space_id))
		return false;
	*event = kind == MRF_OP_READ ? 0 : remote->event;
	return mrf_remote_locate(peer, remote, UINT64_MAX, addr, len, rkey, remote_addr) == len;
}

void mrf_resolve_forget(struct mrf_op *op)
{
	int i;

	for (i = 0; i < op->nrma; i++) {
		struct mrf_remote *remote = mrf_remote_find(op->peer, op->rma[i].key);

		if (remote)
			mrf_remote_drop(remote);
	}
}

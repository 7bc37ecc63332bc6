/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "ep/resolve/judge.h"
#include "mr/serve.h"

/* --- is it allowed? ------------------------------------------------------------------------ */

#define FAIL(...) (mrf_why_set(__VA_ARGS__), false)

/* rkeys are longer than a byte, and the others have one of their highest bits set. */
#define SHORTEST_RKEY 0x100u

/* Under a profile whose keys have fewer bytes they do not. The peer's profile is taken for this one's. */
static bool has_long_keys(const struct mrf_peer *peer)
{
	const struct mrf_profile *profile = peer->ep->domain->space.profile;

	return !profile || profile->key_size == sizeof(uint64_t);
}

/* What is left of a key of 64 bits that went through 32: no region of such a peer has a key so small. */
static bool is_cut(const struct mrf_peer *peer, uint64_t key)
{
	uint64_t mr_mode = peer->target.mr_mode;

	if (!(mr_mode & FI_MR_PROV_KEY) || key > UINT32_MAX || !has_long_keys(peer))
		return false;
	return !(mr_mode & FI_MR_VIRT_ADDR) || key < SHORTEST_RKEY;
}

/* Says what is wrong with the region, whichever bytes are accessed. */
static bool region_ok_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
			     struct mrf_why *why)
{
	switch (remote->status) {
	case MRF_MR_CLOSED:
		return FAIL(why, FI_EKEYREJECTED, 4102, "key 0x%" PRIx64 ": its region was closed",
			    remote->key);
	case MRF_MR_DISABLED:
		return FAIL(why, FI_EACCES, 4103, "key 0x%" PRIx64 ": its region is not enabled",
			    remote->key);
	case MRF_MR_NOT_BOUND:
		return FAIL(why, FI_EACCES, 4143,
			    "key 0x%" PRIx64 ": its region is not bound to the endpoint that "
			    "was addressed (FI_MR_ENDPOINT)",
			    remote->key);
	case MRF_MR_OK:
	case MRF_MR_OUTSIDE:
	case MRF_MR_NOT_REFRESHED:
	case MRF_MR_NOT_MAPPED:
	case MRF_MR_NO_ROOM:
		return true;
	default:
		break;
	}
	if (remote->key == FI_KEY_NOTAVAIL)
		return FAIL(
			why, FI_EKEYREJECTED, 4101,
			"FI_KEY_NOTAVAIL is not a key: fi_mr_key returns it until the region is "
			"enabled, and if the region has no remote right");
	return FAIL(why, FI_EKEYREJECTED, 4101,
		    "key 0x%" PRIx64 " is unknown: the peer has no such region%s", remote->key,
		    is_cut(peer, remote->key)
			    ? "; its domain chooses the keys (FI_MR_PROV_KEY), and none of them is "
			      "so small: pass on all 64 bits of fi_mr_key"
			    : "");
}

static bool bounds_fail_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
			       const struct fi_rma_iov *rma, struct mrf_why *why)
{
	bool virt = peer->target.mr_mode & FI_MR_VIRT_ADDR;
	const char *hint = "";
	uint64_t base = virt ? remote->base : 0, end = base + remote->len;
	uint64_t past = rma->len - (end - rma->addr);

	if (virt && mrf_range_inside(rma->addr, rma->len, 0, remote->len))
		hint = "; this looks like an offset, but the peer's domain takes virtual "
		       "addresses (FI_MR_VIRT_ADDR)";
	else if (!virt && mrf_range_inside(rma->addr, rma->len, remote->base, remote->len))
		hint = "; this looks like an address, but the peer's domain takes offsets";
	if (remote->nparts <= 1 && rma->addr >= base && rma->addr <= end)
		return FAIL(why, FI_EACCES, 4105,
			    "key 0x%" PRIx64 ": %" PRIu64 " byte%s past the end: 0x%" PRIx64
			    " + %zu in a region of %" PRIu64 " bytes at 0x%" PRIx64 "%s",
			    remote->key, past, past == 1 ? "" : "s", rma->addr, rma->len,
			    remote->len, base, hint);
	return FAIL(why, FI_EACCES, 4105,
		    "key 0x%" PRIx64 ": out of bounds: 0x%" PRIx64 " + %zu is outside the region "
		    "of %" PRIu64 " bytes at 0x%" PRIx64 "%s",
		    remote->key, rma->addr, rma->len, remote->len, base, hint);
}

/* Says what is wrong with these bytes of a region that is pinned on demand. */
static bool range_fail_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
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
			    "the region grants (mprotect, pkey_mprotect)",
			    remote->key, range->addr, range->len);
	case MRF_MR_NO_ROOM:
		return FAIL(why, FI_ENOMEM, 4146,
			    "key 0x%" PRIx64 ": 0x%" PRIx64 " + %" PRIu64 ": the peer cannot pin "
			    "these bytes: its memlock limit, regions or file descriptors are "
			    "used up, it has no /proc, or too many peers use its device memory; "
			    "its own log says which",
			    remote->key, range->addr, range->len);
	default:
		return bounds_fail_locked(peer, remote, rma, why);
	}
}

/* An atomic operation that has the right, at a peer whose domain was opened without FI_ATOMIC. */
static bool lacks_atomics_locked(const struct mrf_op *op, const struct mrf_remote *remote,
				 uint64_t right)
{
	switch (op->type->kind) {
	case MRF_OP_ATOMIC:
		/* Raw keys do not tell this; answers do. */
		return remote->known && remote->cookie && (remote->access & right) &&
		       !(remote->access & FI_ATOMIC);
	case MRF_OP_READ:
	case MRF_OP_WRITE:
	case MRF_OP_RPC:
	case MRF_OP_SEND:
		break;
	}
	return false;
}

bool mrf_judge_grants_locked(const struct mrf_op *op, const struct mrf_remote *remote,
			     struct mrf_why *why)
{
	uint64_t right = mrf_kind_remote(op->type->kind);

	mrf_lock_held(&op->peer->ep->lock);
	if (mrf_unlikely(lacks_atomics_locked(op, remote, right)))
		return FAIL(why, FI_EOPNOTSUPP, 4258,
			    "key 0x%" PRIx64 ": the peer's domain was opened without FI_ATOMIC",
			    remote->key);
	if (remote->access & right)
		return true;
	return FAIL(why, FI_EACCES, 4104, "key 0x%" PRIx64 ": its region was registered without %s",
		    remote->key, right == FI_REMOTE_READ ? "FI_REMOTE_READ" : "FI_REMOTE_WRITE");
}

/* --- what an answer says of an operation ---------------------------------------------------- */

bool mrf_judge_fresh_locked(const struct mrf_op *op, const struct mrf_remote *remote)
{
	mrf_lock_held(&op->peer->ep->lock);
	return remote->cookie >= op->stamp;
}

/* The last question was about bytes of this access, so its answer applies to it. */
static bool concerns_locked(const struct mrf_remote *remote, const struct fi_rma_iov *rma)
{
	const struct mrf_range *range = &remote->answered;

	if (!rma->len || !range->len)
		return range->addr == rma->addr && range->len == rma->len;
	return range->addr >= rma->addr && range->addr - rma->addr < rma->len &&
	       range->len <= rma->len - (range->addr - rma->addr);
}

static enum mrf_verdict judge_complete_locked(const struct mrf_op *op,
					      const struct mrf_remote *remote,
					      const struct fi_rma_iov *rma, struct mrf_why *why)
{
	uint64_t where;
	uint32_t rkey;
	bool inside = rma->len ? mrf_range_ok(rma->addr, rma->len) &&
					 mrf_remote_covered_locked(op->peer, remote, op->stamp,
								   rma->addr, rma->len) == rma->len
			       : mrf_remote_locate_locked(op->peer, remote, op->stamp, rma->addr, 0,
							  &rkey, &where);

	if (!inside) {
		bounds_fail_locked(op->peer, remote, rma, why);
		return MRF_BAD;
	}
	/* The kernel checks bytes, not their absence: an empty access needs a fresh
	 * answer. */
	return rma->len || mrf_judge_fresh_locked(op, remote) ? MRF_GOOD : MRF_LACKS;
}

static enum mrf_verdict judge_on_demand_locked(const struct mrf_op *op,
					       const struct mrf_remote *remote,
					       const struct fi_rma_iov *rma, uint64_t *done,
					       struct mrf_why *why)
{
	bool fresh = mrf_judge_fresh_locked(op, remote);

	if (fresh && concerns_locked(remote, rma) && remote->status != MRF_MR_OK) {
		range_fail_locked(op->peer, remote, rma, why);
		return MRF_BAD;
	}
	if (!rma->len)
		return fresh && concerns_locked(remote, rma) ? MRF_GOOD : MRF_LACKS;
	*done = mrf_remote_covered_locked(op->peer, remote, op->stamp, rma->addr, rma->len);
	return *done == rma->len ? MRF_GOOD : MRF_LACKS;
}

enum mrf_verdict mrf_judge_locked(const struct mrf_op *op, const struct mrf_remote *remote,
				  const struct fi_rma_iov *rma, uint64_t *done, struct mrf_why *why)
{
	mrf_lock_held(&op->peer->ep->lock);
	*done = 0;
	if (!remote->known)
		return MRF_LACKS;
	if (!region_ok_locked(op->peer, remote, why) || !mrf_judge_grants_locked(op, remote, why))
		return MRF_BAD;
	return remote->complete ? judge_complete_locked(op, remote, rma, why)
				: judge_on_demand_locked(op, remote, rma, done, why);
}

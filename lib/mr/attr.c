/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/host.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/maps.h"
#include "contract/limits.h"
#include "contract/rules.h"
#include "mr/access.h"
#include "mr/attr.h"
#include "mr/filemem.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/seg.h"
#include "mr/space.h"

_Static_assert(MRF_MR_IOV_LIMIT == MRF_LIMIT_MR_IOV, "what fi_getinfo promises");

/* --- rights ----------------------------------------------------------------------- */

/*
 * Applications hand in capabilities along with the rights, often all of fi_info.caps.
 * They grant nothing and take nothing away. Bits that change a registration when given
 * as flags (FI_RMA_EVENT, FI_RMA_PMEM, FI_HMEM_DEVICE_ONLY) are not among them: there
 * they are a mistake.
 */
#define TOLERATED                                                                                 \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_COLLECTIVE | FI_MULTI_RECV | \
	 FI_TRIGGER | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SOURCE | FI_SOURCE_ERR |     \
	 FI_DIRECTED_RECV | FI_NAMED_RX_CTX)

static uint64_t unknown_access(uint64_t access)
{
	return access & ~(MRF_MR_RIGHTS | TOLERATED);
}

void mrf_mr_access_warn(struct mrf_mr_space *space, uint64_t access)
{
	uint64_t caps = access & TOLERATED;

	if (caps && mrf_mr_space_first(space, MRF_WARNED_CAPS))
		mrf_warn(FI_LOG_MR, 3008,
			 "access=%#lx: bits %#lx are capabilities, not access rights; "
			 "ignored (said once per domain)",
			 access, caps);
	if (!(access & MRF_MR_RIGHTS) && mrf_mr_space_first(space, MRF_WARNED_NO_RIGHT))
		mrf_warn(FI_LOG_MR, 3006,
			 "access=%#lx grants no right: the region is of no use "
			 "(said once per domain)",
			 access);
}

/* More than a program registers but for all of its address space. */
#define ALL_OF_MEMORY (1ul << 46)

/* Peers will be refused there. It is no mistake where the program maps something there later. */
static void tell_null(struct mrf_mr_space *space, const struct iovec *iov)
{
	if (!iov->iov_base && iov->iov_len && iov->iov_len < ALL_OF_MEMORY &&
	    mrf_mr_space_first(space, MRF_WARNED_NULL))
		mrf_warn(
			FI_LOG_MR, 3010,
			"buf=NULL, len=%zu: registered, but peers are refused until memory is mapped "
			"there, which needs privileges (said once per domain)",
			iov->iov_len);
}

/* Looking that up takes too long to be done unless somebody wants to know. */
static void tell_read_only(const struct iovec *iov)
{
	uint64_t start = (uintptr_t)iov->iov_base;
	const struct mrf_mapping *first;
	struct mrf_maps maps = { 0 };

	if (!iov->iov_len || !mrf_log_enabled(FI_LOG_INFO, FI_LOG_MR) ||
	    mrf_maps_look(&maps, start, start + 1))
		return;
	first = mrf_maps_at(&maps, start);
	if (first && first->perms[1] != 'w')
		mrf_info(FI_LOG_MR,
			 "%p + %zu byte%s: registered with FI_REMOTE_WRITE, but the memory is "
			 "mapped without PROT_WRITE: until that changes, peers' writes are refused",
			 iov->iov_base, iov->iov_len, MRF_S(iov->iov_len));
	mrf_maps_fini(&maps);
}

void mrf_mr_demand_tell(struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	size_t i;

	for (i = 0; i < attr->iov_count; i++) {
		tell_null(space, &attr->mr_iov[i]);
		if (attr->access & FI_REMOTE_WRITE)
			tell_read_only(&attr->mr_iov[i]);
	}
}

/* --- keys that the application chooses --------------------------------------------- */

/* Without a profile the key is as long as fi_getinfo has said, but that is not so everywhere. */
static void tell_long_key(struct mrf_mr_space *space, uint64_t key)
{
	if (space->careful && !space->profile && mrf_mr_space_first(space, MRF_WARNED_LONG_KEY))
		mrf_misuse(
			FI_LOG_MR, 3082,
			"requested_key=%#lx: a provider whose keys have 4 bytes (mr_key_size) refuses "
			"it; nearly all take keys up to 0xffffffff (said once per domain)",
			key);
}

int mrf_mr_attr_key(struct mrf_mr_space *space, uint64_t key)
{
	if (key == FI_KEY_NOTAVAIL)
		return mrf_refuse(FI_EKEYREJECTED, FI_LOG_MR, 3023,
				  "requested_key=%#lx is FI_KEY_NOTAVAIL, which is not a key", key);
	tell_long_key(space, key);
	return 0;
}

/* --- all arguments ---------------------------------------------------------------- */

/*
 * With later releases of libfabric the flag says that fi_mr_attr describes another kind of memory, so that
 * it cannot be ignored.
 */
#define OTHER_MEMORY (1ull << 40) /* FI_MR_DMABUF */

/* Those whose meaning a provider may not know. */
#define EVENT_FLAGS (FI_RMA_EVENT | FI_RMA_PMEM)

static int refuse_flags(struct mrf_mr_space *space, uint64_t flags)
{
	int err = mrf_mr_profiled_error(space, MRF_PROFILE_FLAG, FI_EBADFLAGS);

	if (!(flags & (FI_HMEM_DEVICE_ONLY | OTHER_MEMORY)) &&
	    mrf_mr_profiled_lax(space, MRF_LAX_FLAG, "flags", flags))
		return 0;
	if (flags & FI_HMEM_DEVICE_ONLY)
		return mrf_refuse(err, FI_LOG_MR, 3012,
				  "flags=%#lx: FI_HMEM_DEVICE_ONLY is for domains that were "
				  "opened with the capability FI_HMEM",
				  flags);
	if (!(flags & ~EVENT_FLAGS))
		return mrf_refuse(err, FI_LOG_MR, 3013,
				  "flags=%#lx: there is no such registration flag with "
				  "FI_MRFAB_PROFILE=%s (%s)",
				  flags, space->profile->name, space->profile->what);
	return mrf_refuse(err, FI_LOG_MR, 3009, "flags=%#lx: there is no such registration flag",
			  flags);
}

static int refuse_iov(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	unsigned limit = space->profile ? space->profile->iov_limit : MRF_MR_IOV_LIMIT;

	if (!attr->mr_iov)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3001, "mr_iov must not be NULL");
	if (space->profile && attr->iov_count > limit)
		return mrf_mr_profiled_iov(space, attr);
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3002,
			  "iov_count=%zu, but must be %s%u (mr_iov_limit)", attr->iov_count,
			  limit > 1 ? "from 1 to " : "", limit);
}

static int refuse_access(uint64_t access)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3005,
			  "access=%#lx: bits %#lx are not access rights", access,
			  unknown_access(access));
}

static int check_mr_key(const struct fi_mr_attr *attr)
{
	if (!attr->auth_key)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3200,
				  "auth_key must not be NULL, because auth_key_size is %zu",
				  attr->auth_key_size);
	if (attr->auth_key_size > MRF_LIMIT_AUTH_KEY)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3201,
				  "auth_key_size=%zu: an authorization key has at most %d bytes",
				  attr->auth_key_size, MRF_LIMIT_AUTH_KEY);
	return 0;
}

static int refuse_wrap(const struct fi_mr_attr *attr, size_t i)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3003,
			  "mr_iov[%zu]: %p + %zu byte%s passes the end of the address space", i,
			  attr->mr_iov[i].iov_base, attr->mr_iov[i].iov_len,
			  MRF_S(attr->mr_iov[i].iov_len));
}

static int check_ranges(const struct fi_mr_attr *attr, struct mrf_mr_plan *plan)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < attr->iov_count; i++) {
		const struct iovec *iov = &attr->mr_iov[i];

		if (mrf_unlikely(!mrf_range_ok((uintptr_t)iov->iov_base, iov->iov_len)))
			return refuse_wrap(attr, i);
		if (__builtin_add_overflow(total, (uint64_t)iov->iov_len, &total))
			return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3003,
					  "the lengths of %zu segments add up to more than "
					  "2^64 bytes",
					  attr->iov_count);
	}
	plan->len = total;
	return 0;
}

/* Decides, by the mode, what kind of region this registration makes. */
static void decide_kind(const struct mrf_mr_space *space, uint64_t flags, struct mrf_mr_plan *plan)
{
	uint64_t mode = space->mode;
	bool event = flags & FI_RMA_EVENT;

	plan->next = false;
	plan->begins = MRF_STATE_ENABLED;
	if (mode & FI_MR_ENDPOINT || (mode & FI_MR_RMA_EVENT && event))
		plan->begins = MRF_STATE_DISABLED;
	plan->demand = !(mode & FI_MR_ALLOCATED) || mode & FI_MR_MMU_NOTIFY;
	plan->event = plan->access & FI_REMOTE_WRITE && (event || space->events_all);
}

/* Where the memory need not be there yet, a peer's write is refused instead. */
static int check_pmem(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	size_t i;

	for (i = 0; i < attr->iov_count && space->mode & FI_MR_ALLOCATED; i++) {
		const struct iovec *iov = &attr->mr_iov[i];
		int err;
		const char *why = mrf_pmem_why_not((uintptr_t)iov->iov_base, iov->iov_len, &err);

		if (why && err)
			return mrf_refuse(err, FI_LOG_MR, 3494,
					  "mr_iov[%zu]: %p + %zu byte%s: FI_RMA_PMEM: "
					  "this memory %s",
					  i, iov->iov_base, iov->iov_len, MRF_S(iov->iov_len), why);
		if (why)
			return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3280,
					  "mr_iov[%zu]: %p + %zu byte%s: FI_RMA_PMEM needs a "
					  "shared mapping of a file on storage, but this memory %s",
					  i, iov->iov_base, iov->iov_len, MRF_S(iov->iov_len), why);
	}
	return 0;
}

static uint64_t event_flags(const struct mrf_mr_space *space)
{
	if (mrf_likely(!space->profile))
		return EVENT_FLAGS;
	if (space->profile->habits & MRF_HABIT_NO_FLAGS)
		return 0;
	return EVENT_FLAGS & space->profile->promise->caps;
}

/* Those that are accepted and mean nothing are taken out of *flags. */
static int check_reg_flags(struct mrf_mr_space *space, uint64_t *flags)
{
	uint64_t device = space->mode & FI_MR_HMEM ? FI_HMEM_DEVICE_ONLY : 0;
	uint64_t wrong = mrf_host_strip(*flags) & ~(event_flags(space) | device);

	if (mrf_likely(!wrong))
		return 0;
	*flags &= ~wrong;
	return refuse_flags(space, wrong);
}

int mrf_mr_attr_check(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
		      struct mrf_mr_plan *plan)
{
	uint32_t api_version = space->api_version;
	int ret = check_reg_flags(space, &flags);

	if (mrf_unlikely(ret))
		return ret;
	if (mrf_unlikely(attr->offset) &&
	    !mrf_mr_profiled_lax(space, MRF_LAX_OFFSET, "offset", attr->offset))
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3007,
				  "offset=%#lx: this field is reserved and must be 0",
				  attr->offset);
	if (mrf_unlikely(!attr->mr_iov || !attr->iov_count || attr->iov_count > MRF_MR_IOV_LIMIT))
		return refuse_iov(space, attr);
	if (mrf_unlikely(unknown_access(attr->access)) &&
	    !mrf_mr_profiled_lax(space, MRF_LAX_ACCESS, "access", attr->access))
		return refuse_access(attr->access);
	if (mrf_unlikely(attr->auth_key_size && mrf_rule_auth_key(api_version))) {
		ret = check_mr_key(attr);
		if (ret)
			return ret;
	}
	ret = check_ranges(attr, plan);
	if (mrf_unlikely(ret))
		return ret;
	if (mrf_unlikely(!plan->len && mrf_rule_len_zero_refused(api_version)) &&
	    !mrf_mr_profiled_lax(space, MRF_LAX_LEN, "len", 0))
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3004,
				  "len must be greater than 0 from API version 1.13 on");
	plan->access = attr->access & MRF_MR_RIGHTS;
	if (mrf_mr_profiled_habit(space, MRF_HABIT_NO_KEYS))
		plan->access &= ~MRF_MR_REMOTE;
	decide_kind(space, flags, plan);
	if (mrf_unlikely(flags & FI_RMA_PMEM)) {
		/* Kept with the rights, which are looked at bit by bit. */
		plan->access |= FI_RMA_PMEM;
		return check_pmem(space, attr);
	}
	return 0;
}

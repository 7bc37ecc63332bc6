/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/access.h"
#include "mr/profiled.h"
#include "mr/region.h"

int mrf_mr_profiled_call(const struct mrf_mr_space *space, enum mrf_profile_call call)
{
	const struct mrf_profile *profile = space->profile;

	if (mrf_likely(!profile || !profile->error[call]))
		return 0;
	return mrf_refuse(profile->error[call], FI_LOG_MR, 3017,
			  "%s: %s not exist with FI_MRFAB_PROFILE=%s (%s)",
			  mrf_profile_call_name(call),
			  call == MRF_PROFILE_REGV ? "these calls do" : "this call does",
			  profile->name, profile->what);
}

int mrf_mr_profiled_iov(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	const struct mrf_profile *profile = space->profile;

	if (!profile || attr->iov_count <= profile->iov_limit)
		return 0;
	return mrf_refuse(profile->iov_error, FI_LOG_MR, 3027,
			  "iov_count=%zu: mr_iov_limit is %u with FI_MRFAB_PROFILE=%s (%s)",
			  attr->iov_count, profile->iov_limit, profile->name, profile->what);
}

int mrf_mr_profiled_error(const struct mrf_mr_space *space, enum mrf_profile_wrong what, int usual)
{
	const struct mrf_profile *profile = space->profile;

	return profile && profile->wrong[what] ? profile->wrong[what] : usual;
}

bool mrf_mr_profiled_lax(struct mrf_mr_space *space, enum mrf_profile_lax what, const char *name,
			 uint64_t value)
{
	if (!(space->lax & what))
		return false;
	if (mrf_mr_space_first(space, MRF_WARNED_LAX))
		mrf_warn(
			FI_LOG_MR, 3011,
			"%s=%#lx: accepted, because FI_MRFAB_PROFILE=%s+lenient leaves it unchecked; %s "
			"(said once per domain)",
			name, value, space->profile->name,
			what == MRF_LAX_LEN ? "the region has no bytes" : "it has no effect");
	return true;
}

/* What this library takes, with a warning. */
static int check_right(const struct mrf_profile *profile, const struct fi_mr_attr *attr)
{
	if (!(profile->habits & MRF_HABIT_RIGHT_NEEDED) ||
	    (attr->access && attr->mr_iov[0].iov_base))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3029,
			  "buf=%p, access=%#lx: both are needed with FI_MRFAB_PROFILE=%s (%s)",
			  attr->mr_iov[0].iov_base, attr->access, profile->name, profile->what);
}

int mrf_mr_profiled_attr(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	const struct mrf_profile *profile = space->profile;
	int ret;

	if (mrf_likely(!profile))
		return 0;
	ret = mrf_mr_profiled_iov(space, attr);
	if (!ret)
		ret = check_right(profile, attr);
	if (ret || space->mode & FI_MR_PROV_KEY || !(attr->access & MRF_MR_REMOTE) ||
	    attr->requested_key <= profile->max_key)
		return ret;
	return mrf_refuse(
		FI_EKEYREJECTED, FI_LOG_MR, 3028,
		"requested_key=%#lx: the greatest key is %#lx with FI_MRFAB_PROFILE=%s (%s)",
		attr->requested_key, profile->max_key, profile->name, profile->what);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the domain's profile (contract/profile.h) refuses. Without a profile: nothing. Any thread. */
#ifndef MRF_MR_PROFILED_H
#define MRF_MR_PROFILED_H

#include <stdbool.h>
#include "base/compiler.h"
#include "contract/rules.h"
#include "mr/space.h"

/* Is there such a call? 0, or the error that the provider returns, logged. */
int mrf_mr_profiled_call(const struct mrf_mr_space *space, enum mrf_profile_call call);
/* Does it take so many segments? 0, or the provider's error; logged. */
int mrf_mr_profiled_iov(const struct mrf_mr_space *space, const struct fi_mr_attr *attr);
/*
 * Does it take so many segments, and this key? Only regions that peers may reach have one.
 * -FI_EKEYREJECTED, or the provider's error; logged.
 */
int mrf_mr_profiled_attr(const struct mrf_mr_space *space, const struct fi_mr_attr *attr);

/* What a mistake is answered with: usual, or the provider's error. FI_E*. */
int mrf_mr_profiled_error(const struct mrf_mr_space *space, enum mrf_profile_wrong what, int usual);

/* Is this accepted, because the provider does not check it? Then a line says so, once per domain. */
bool mrf_mr_profiled_lax(struct mrf_mr_space *space, enum mrf_profile_lax what, const char *name,
			 uint64_t value);

static inline bool mrf_mr_profiled_habit(const struct mrf_mr_space *space,
					 enum mrf_profile_habit habit)
{
	return mrf_unlikely(space->profile && space->profile->habits & habit);
}

/* Do regions close before what they are bound to, by the version or the profile? Otherwise after it. */
static inline bool mrf_mr_profiled_region_first(const struct mrf_mr_space *space)
{
	return mrf_rule_region_closes_first(space->api_version) ||
	       mrf_mr_profiled_habit(space, MRF_HABIT_REGION_FIRST);
}

#endif

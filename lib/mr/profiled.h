/* SPDX-License-Identifier: BSD-2-Clause */
/* What the domain's profile (contract/profile.h) refuses. Without a profile: nothing. Any thread. */
#ifndef MRF_MR_PROFILED_H
#define MRF_MR_PROFILED_H

#include "mr/space.h"

/* Is there such a call? 0, or the error that the provider returns, logged. */
int mrf_mr_profiled_call(const struct mrf_mr_space *space, enum mrf_profile_call call);
/*
 * Does it take so many segments, and this key? Only regions that peers may reach have one.
 * -FI_EKEYREJECTED, or the provider's error; logged.
 */
int mrf_mr_profiled_attr(const struct mrf_mr_space *space, const struct fi_mr_attr *attr);

#endif

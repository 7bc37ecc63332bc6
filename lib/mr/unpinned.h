/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_UNPINNED_H
#define MRF_MR_UNPINNED_H

#include "mr/region.h"

/*
 * Prepares a region that is not pinned, or not yet. pins, whose seg holds the segments, gets no
 * kernel regions; *back becomes the backing that will hold peers' pins (NULL: the region is not
 * pinned on demand, or is a device's). Checks that the memory exists if the mode requires it.
 * Failures are logged.
 */
int mrf_mr_unpinned(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
		    struct mrf_mr_pins *pins, struct mrf_mr_back **back);

#endif

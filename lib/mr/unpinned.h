/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_UNPINNED_H
#define MRF_MR_UNPINNED_H

#include "mr/region.h"

/*
 * What a region needs that is not pinned, or not yet: pins, which says where, gets no kernel
 * regions, *back what peers' pins will be held by (NULL: it is not pinned on demand). Where the
 * mode says that memory is there, it is. Logs why not.
 */
int mrf_mr_unpinned(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
		    struct mrf_mr_pins *pins, struct mrf_mr_back **back);

#endif

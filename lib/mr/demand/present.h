/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is there when a region is created, under FI_MR_MMU_NOTIFY. fi_mr(3) says that the application
 * tells of pages before peers reach them, and that it has to only if pages may have changed since
 * the region was created. Both hold if what has memory at that moment counts as refreshed, and what
 * has none does not, also when it gets some later: that is a change.
 *
 * So it is looked at once, by the call that creates the region, also where the region is enabled
 * later or registered asynchronously. A look at the first access would be cheaper still, but finds
 * what came later, too. Under FI_MR_ALLOCATED all of it has to be there, and nothing is looked at.
 */
#ifndef MRF_MR_DEMAND_PRESENT_H
#define MRF_MR_DEMAND_PRESENT_H

#include "mr/demand/back.h"

/* Of a new one: sets refreshed, if it has notify. -FI_ENOMEM. */
int mrf_mr_back_present(struct mrf_mr_back *back);

#endif

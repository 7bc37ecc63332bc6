/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages that exist when a region is created, under FI_MR_MMU_NOTIFY. fi_mr(3) says
 * that the application announces pages before peers reach them, and that it has to do so
 * only if pages may have changed since the region was created. Both hold if pages that
 * have memory at that moment count as refreshed and others do not, even if they get
 * memory later, because that is a change.
 *
 * So the call that creates the region looks at its pages once, even if the region is
 * enabled later or registered asynchronously. Looking at the first access would be
 * cheaper, but would also find pages that came later. Under FI_MR_ALLOCATED all pages
 * have to exist, and there is no need to look.
 */
#ifndef MRF_MR_DEMAND_PRESENT_H
#define MRF_MR_DEMAND_PRESENT_H

#include "mr/demand/back.h"

/* Sets refreshed of a new backing, if it has notify. -FI_ENOMEM. */
int mrf_mr_back_present(struct mrf_mr_back *back);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_DEMAND_REACH_H
#define MRF_MR_DEMAND_REACH_H

#include "mr/serve.h"

struct mrf_mr_back;

/*
 * Fills in the parts of an answer that are about the range: status, once, segments. No
 * lock held.
 */
void mrf_mr_back_reach(struct mrf_mr_back *back, const struct mrf_mr_query *query,
		       struct mrf_mr_lease *lease, struct mrf_mr_view *view);

#endif

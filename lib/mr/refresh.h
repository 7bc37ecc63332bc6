/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_REFRESH_H
#define MRF_MR_REFRESH_H

#include "mr/demand/back.h"

/* fi_mr_refresh. */
int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify);

#endif

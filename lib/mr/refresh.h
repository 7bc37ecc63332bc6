/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_REFRESH_H
#define MRF_MR_REFRESH_H

#include "mr/demand/back.h"

/*
 * Of a new one with notify: all of its memory is there, so that none has to be refreshed before
 * it changes. -FI_ENOMEM.
 */
int mrf_mr_back_present(struct mrf_mr_back *back);

/* fi_mr_refresh. */
int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify);

#endif

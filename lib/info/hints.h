/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the hints, except addresses and mr_mode. */
#ifndef MRF_INFO_HINTS_H
#define MRF_INFO_HINTS_H

#include "info/query.h"

/*
 * Compares the hints with the offer of every path; logs one line for each hint that asks
 * for more. 0, -FI_ENODATA, or -FI_EINVAL for hints that make no sense.
 */
int mrf_info_check_hints(const struct mrf_info_query *query);

#endif

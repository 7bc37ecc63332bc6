/* SPDX-License-Identifier: BSD-2-Clause */
/* What hints may ask for, but addresses and mr_mode. */
#ifndef MRF_INFO_HINTS_H
#define MRF_INFO_HINTS_H

#include "info/query.h"

/*
 * Compares the hints with what every path offers; one line for each that asks for more.
 * 0, -FI_ENODATA, or -FI_EINVAL for hints that make no sense.
 */
int mrf_info_check_hints(const struct mrf_info_query *query);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* mr_mode, as the hints and FI_MRFAB_MR_MODE have it. */
#ifndef MRF_INFO_MODE_H
#define MRF_INFO_MODE_H

#include "info/query.h"

/*
 * Sets mr, offer and required, by the hints and by what the environment says now. Logs;
 * -FI_ENODATA when FI_MRFAB_MR_MODE makes no sense.
 */
int mrf_info_mode_set(struct mrf_info_query *query);
/* Is mr_mode as hinted good enough? 0 or -FI_ENODATA and a line. */
int mrf_info_mode_check(const struct mrf_info_query *query);
/* Is remote access withheld, because the needed modes are not offered? */
bool mrf_info_mode_withheld(const struct mrf_info_query *query);
/* As answered: caps, and domain_attr->mr_mode where no domain is open yet. */
uint64_t mrf_info_mode_caps(const struct mrf_info_query *query);
uint64_t mrf_info_mode_answer(const struct mrf_info_query *query);

#endif

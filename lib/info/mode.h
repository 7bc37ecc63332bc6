/* SPDX-License-Identifier: BSD-2-Clause */
/* mr_mode in fi_getinfo, from the hints and FI_MRFAB_MR_MODE. */
#ifndef MRF_INFO_MODE_H
#define MRF_INFO_MODE_H

#include "info/query.h"

/*
 * Sets mr, offer and required from the hints and the present environment. -FI_ENODATA
 * (logged): FI_MRFAB_MR_MODE makes no sense.
 */
int mrf_info_mode_set(struct mrf_info_query *query);
/* Is the mr_mode in the hints sufficient? 0, or -FI_ENODATA and a logged line. */
int mrf_info_mode_check(const struct mrf_info_query *query);
/* Is remote access withheld because the needed modes are not offered? */
bool mrf_info_mode_withheld(const struct mrf_info_query *query);
/* The values to return: caps, and domain_attr->mr_mode if no domain is open yet. */
uint64_t mrf_info_mode_caps(const struct mrf_info_query *query);
uint64_t mrf_info_mode_answer(const struct mrf_info_query *query);

#endif

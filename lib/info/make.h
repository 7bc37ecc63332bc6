/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer: a struct fi_info made from a path. */
#ifndef MRF_INFO_MAKE_H
#define MRF_INFO_MAKE_H

#include "info/query.h"

/* The version of this provider, for fabric_attr->prov_version. */
uint32_t mrf_info_prov_version(void);

/* Makes the fi_info of a path, adapted to the hints; NULL when there is no memory. */
struct fi_info *mrf_info_make(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			      const struct mrf_info_match *match);

#endif

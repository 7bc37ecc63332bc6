/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo. */
#ifndef MRF_INFO_GET_H
#define MRF_INFO_GET_H

#include <rdma/fabric.h>

/* Returns the errors of fi_getinfo(3); the reason of each is logged. */
int mrf_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables through which applications call: a region's, and a domain's for regions. A space
 * has them (mrf_mr_space_init), so that nothing below has to name what is above it.
 */
#ifndef MRF_MR_OPS_H
#define MRF_MR_OPS_H

#include <rdma/fi_domain.h>

extern struct fi_ops mrf_mr_region_ops;
/* To be copied into a space's ops, where its functions find the space. */
extern const struct fi_ops_mr mrf_mr_ops;

#endif

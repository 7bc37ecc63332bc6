/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operation tables through which applications call lib/mr: that of a region, and that
 * of a domain for regions. mrf_mr_space_init puts them into the space, so that no lower
 * file has to name them.
 */
#ifndef MRF_MR_MR_OPS_H
#define MRF_MR_MR_OPS_H

#include <rdma/fi_domain.h>

extern struct fi_ops mrf_mr_region_ops;
/* Copied into each space's ops; from there its functions find the space. */
extern const struct fi_ops_mr mrf_mr_ops;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_raw_attr, fi_mr_map_raw and fi_mr_unmap_key. Each logs a line for every error.
 * The caller has checked that this process opened the object.
 */
#ifndef MRF_MR_RAWKEY_H
#define MRF_MR_RAWKEY_H

#include <rdma/fi_domain.h>

struct mrf_mr;
struct mrf_mr_space;

int mrf_mr_raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr);
int mrf_mr_map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr);
int mrf_mr_unmap_key(struct mrf_mr_space *space, const uint64_t *key);
/* -FI_EBUSY, with a logged line, while keys are mapped. */
int mrf_mr_space_mapped(struct mrf_mr_space *space);

#endif

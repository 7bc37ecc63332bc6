/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_REGISTER_H
#define MRF_MR_REGISTER_H

#include <rdma/fi_domain.h>

struct mrf_mr_space;

/*
 * The common body of fi_mr_reg, fi_mr_regv and fi_mr_regattr. Checks every argument (an
 * errno and a logged line for each error), registers, reserves the key, and writes *mr on
 * success only.
 */
int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **mr);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_mr(3) behind the tables of operations (ops.h). Each logs a line for every
 * error.
 */
#ifndef MRF_MR_MR_CALLS_H
#define MRF_MR_MR_CALLS_H

#include <rdma/fi_domain.h>

struct mrf_mr;
struct mrf_mr_space;

/*
 * The common body of fi_mr_reg, fi_mr_regv and fi_mr_regattr. Checks every argument (an
 * errno and a logged line for each error), registers, reserves the key, and writes *mr on
 * success only.
 */
int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **mr);

/*
 * fi_close of a region: when it returns 0, the kernel lets nobody access it any more.
 * -FI_EBUSY: an object that it is bound to has to be closed first. If the kernel does not
 * give a kernel region up, its error is returned, and the call may be repeated. Each
 * error is logged.
 */
int mrf_mr_close(struct fid *fid);

/* fi_mr_enable. */
int mrf_mr_enable(struct mrf_mr *mr);
/* fi_mr_refresh. */
int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify);

/*
 * fi_mr_raw_attr, fi_mr_map_raw and fi_mr_unmap_key. The caller has checked that this process
 * opened the object.
 */
int mrf_mr_raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr);
int mrf_mr_map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr);
int mrf_mr_unmap_key(struct mrf_mr_space *space, const uint64_t *key);
/* -FI_EBUSY, with a logged line, while keys are mapped. */
int mrf_mr_space_mapped(struct mrf_mr_space *space);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a completion queue: the calls of fi_cq(3). */
#ifndef MRF_OBJ_CQ_READ_H
#define MRF_OBJ_CQ_READ_H

#include <rdma/fi_eq.h>
#include "obj/cq.h"

struct mrf_cq;

/*
 * Frees an error that is no longer used (or NULL), or keeps it as the spare if there is none.
 * The caller holds cq->lock.
 */
void mrf_cq_spare_locked(struct mrf_cq *cq, struct mrf_comp_err *err);

/* The table for fid.ops. */
extern struct fi_ops_cq mrf_cq_ops;

#endif

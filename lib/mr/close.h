/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_CLOSE_H
#define MRF_MR_CLOSE_H

#include <rdma/fabric.h>

/*
 * fi_close of a region: when it returns 0, the kernel lets nobody through any more. -FI_EBUSY:
 * what it is bound to goes first; or the error of a kernel that keeps a region, which may be
 * closed again then. Each is logged.
 */
int mrf_mr_close(struct fid *fid);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_CLOSE_H
#define MRF_MR_CLOSE_H

#include <rdma/fabric.h>

/*
 * fi_close of a region: when it returns 0, the kernel lets nobody access it any more.
 * -FI_EBUSY: an object that it is bound to has to be closed first. If the kernel does not
 * give a kernel region up, its error is returned, and the call may be repeated. Each
 * error is logged.
 */
int mrf_mr_close(struct fid *fid);

#endif

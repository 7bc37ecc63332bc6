/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Importing a memory monitor: the application's own takes the place of the library's, for
 * everything that is kept between operations, until the application closes it. Changes that
 * this monitor does not report go unnoticed.
 */
#ifndef MRF_MONITOR_IMPORT_H
#define MRF_MONITOR_IMPORT_H

#include <rdma/fabric.h>

/*
 * Takes over a struct fid_mem_monitor: sets its import_ops (notify) and its fid's
 * operations, whose fi_close gives it back. Each error is logged: -FI_EINVAL (flags, the
 * class, or too few operations), -FI_EBUSY (one is imported already, or the library's own is
 * in use).
 */
int mrf_monitor_import(struct fid *fid, uint64_t flags);

#endif

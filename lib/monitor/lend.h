/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lending the library's monitor to another library: a struct fid_mem_monitor whose
 * export_ops watch memory as we do for ourselves, and which calls the borrower's
 * import_ops->notify.
 *
 * A change that a hook sees is notified before it is made, by the thread that makes it and
 * without any lock of ours. A change that only userfaultfd tells of is notified when it has
 * been made. `valid` waits until what has been made is known.
 */
#ifndef MRF_MONITOR_LEND_H
#define MRF_MONITOR_LEND_H

#include <stdbool.h>
#include <rdma/fabric.h>

struct fid_mem_monitor;

/*
 * Makes one that the caller owns until its fi_close, which is -FI_EBUSY while it is
 * started. Errors are logged: -FI_EINVAL (flags, or expfid is NULL), -FI_ENOMEM.
 */
int mrf_monitor_export(uint64_t flags, struct fid **expfid, void *context);
/* Is it one of ours? */
bool mrf_monitor_lent(const struct fid_mem_monitor *monitor);

#endif

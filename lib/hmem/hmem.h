/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces of device memory (table.h), each loaded when it is first asked for. */
#ifndef MRF_HMEM_HMEM_H
#define MRF_HMEM_HMEM_H

#include "hmem/table.h"

/*
 * The table of an interface that is not FI_HMEM_SYSTEM, loaded and ready. Errors are logged:
 * -FI_ENOSYS (as above, or an interface that is not supported), -FI_ENODEV, -FI_EIO.
 */
int mrf_hmem_open(enum fi_hmem_iface iface, const struct mrf_hmem **hmem);
/*
 * The interface whose memory this is, and what is there; NULL: none of those knows it that were
 * opened or that the process had loaded when mrf_hmem_notice was last called.
 */
const struct mrf_hmem *mrf_hmem_whose(uintptr_t addr, struct mrf_hmem_alloc *alloc);
/* Opens the runtimes that the application has loaded. */
void mrf_hmem_notice(void);

#endif

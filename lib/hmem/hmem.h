/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses among the interfaces of device memory, whose tables are in table.h. */
#ifndef MRF_HMEM_HMEM_H
#define MRF_HMEM_HMEM_H

#include "hmem/table.h"

/*
 * Finds the table of an interface other than FI_HMEM_SYSTEM, and loads its runtime. Errors are
 * logged: -FI_ENOSYS (the runtime's, or the interface is not supported), -FI_ENODEV, -FI_EIO.
 */
int mrf_hmem_open(enum fi_hmem_iface iface, const struct mrf_hmem **hmem);
/*
 * Finds the interface that the memory belongs to, and the allocation. It asks the runtimes that
 * are open: by mrf_hmem_open, or by mrf_hmem_notice. NULL: none of them knows the address.
 */
const struct mrf_hmem *mrf_hmem_whose(uintptr_t addr, struct mrf_hmem_alloc *alloc);
/* Opens the runtimes that the application has loaded. */
void mrf_hmem_notice(void);

#endif

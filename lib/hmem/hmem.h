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

#endif

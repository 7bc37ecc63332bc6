/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include <rdma/fabric.h>

/* The API level that the library speaks; its own version is PACKAGE_VERSION. */
MRF_EXPORT uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "fab.h"

const struct fab_lib fab_ours = {
	.provider = "mrfab",
	.getinfo = fi_getinfo,
	.fabric = fi_fabric,
	.dupinfo = fi_dupinfo,
	.version = fi_version,
};

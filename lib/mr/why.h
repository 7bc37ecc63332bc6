/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel refused. */
#ifndef MRF_MR_WHY_H
#define MRF_MR_WHY_H

#include "mr/space.h"

/* Logs why pinning [addr, addr + len) failed with err (-FI_E*) and returns err. Slow. */
int mrf_mr_why(const struct mrf_mr_space *space, const void *addr, size_t len, unsigned rights,
	       int err);

#endif

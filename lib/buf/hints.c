/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "buf/hints.h"

#define MOST 18 /* bits; what is never used takes no memory */

int mrf_hints_init(struct mrf_hints *hints, uint64_t entries)
{
	unsigned bits = 1;

	while (bits < MOST && entries >> (bits - 1))
		bits++;
	hints->shift = 64 - bits;
	hints->slots = calloc((size_t)1 << bits, sizeof(*hints->slots));
	return hints->slots ? 0 : -FI_ENOMEM;
}

void mrf_hints_fini(struct mrf_hints *hints)
{
	free(hints->slots);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* From the start of a process to a domain of libmrfab. */
#include "fab.h"

int main(void)
{
	struct fab fab;

	return fab_open_domain(&fab, &fab_ours, FAB_NATIVE, 0) ? 1 : 0;
}

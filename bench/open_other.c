/* SPDX-License-Identifier: BSD-2-Clause */
/* From the start of a process to a domain of an installed libfabric. */
#include "fab.h"

int main(void)
{
	struct fab_lib lib;
	struct fab fab;

	return !fab_find_other(&lib) || fab_open_domain(&fab, &lib, FAB_NATIVE, 0) ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* From the start of a process to a protection domain, raw. */
#include "raw.h"

int main(void)
{
	struct raw raw;

	raw_open(&raw);
	return 0;
}

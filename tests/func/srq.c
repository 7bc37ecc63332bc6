/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receives, and connections without rights, on a real device:
 *
 *	scripts/with-rxe --kernel 6.1 -- build/main/tests/func/srq
 *
 * The cases are those of tests/unit/t_srq.c, which runs them on the fake fabric. Prints "ok NAME"
 * or "not ok NAME: why".
 */
#include <stdlib.h>
#include "lines.h"

static bool run(const struct line_case *one)
{
	bool ok = lines_open() && one->run();

	lines_close();
	if (ok)
		printf("ok %s\n", one->name);
	else
		printf("not ok %s: %s\n", one->name, why);
	fflush(stdout);
	return ok;
}

int main(void)
{
	const unsigned count = MRF_ARRAY_SIZE(line_cases);
	unsigned failed = 0;

	for (unsigned i = 0; i < count; i++)
		failed += !run(&line_cases[i]);
	printf("srq: %u passed, %u failed, 0 skipped\n", count - failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

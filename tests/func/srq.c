/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receives, connections without rights, and pairs, on a real device:
 *
 *	scripts/with-rxe --kernel 6.1 -- build/main/tests/func/srq
 *
 * The cases are those of tests/unit/t_srq.c and t_pair.c, which run them on the fake fabric. Prints
 * "ok NAME" or "not ok NAME: why".
 */
#include <stdlib.h>
#include "pairs.h"

static bool joined(void)
{
	return ends_open() && pairs_open();
}

static const struct group {
	const struct line_case *cases;
	unsigned count;
	bool (*open)(void);
	void (*close)(void);
} groups[] = {
	{ line_cases, MRF_ARRAY_SIZE(line_cases), lines_open, lines_close },
	{ pair_cases, MRF_ARRAY_SIZE(pair_cases), joined, pairs_close },
	{ end_cases, MRF_ARRAY_SIZE(end_cases), ends_open, pairs_close },
};

static bool run(const struct group *group, const struct line_case *one)
{
	bool ok = group->open() && one->run();

	group->close();
	if (ok)
		printf("ok %s\n", one->name);
	else
		printf("not ok %s: %s\n", one->name, why);
	fflush(stdout);
	return ok;
}

int main(void)
{
	unsigned count = 0, failed = 0;

	for (size_t g = 0; g < MRF_ARRAY_SIZE(groups); g++) {
		for (unsigned i = 0; i < groups[g].count; i++, count++)
			failed += !run(&groups[g], &groups[g].cases[i]);
	}
	printf("srq: %u passed, %u failed, 0 skipped\n", count - failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

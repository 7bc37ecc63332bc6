/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmrfab against raw verbs: prints docs/PERFORMANCE.md. Run by `make bench`.
 *
 * Usage: mrfab_bench [open] [cache] [demand] [match] [message] [discover] [register] [alive] [rawkey]
 *                    [completions] [access] [local] [device] [atomic] [beside] [event] [agent] [peers]
 *    only these parts
 * Exit status: 0 all targets met, 1 some missed, 2 could not measure.
 */
#include <string.h>
#include "parts.h"

static char **parts; /* NULL: all */

/* Says what comes next, and when. */
static int wanted(const char *part)
{
	static uint64_t start;
	char **p;

	for (p = parts; p && *p && strcmp(*p, part); p++)
		;
	if (p && !*p)
		return 0;
	if (!start)
		start = bench_now();
	fprintf(stderr, "bench: %5.1f s  %s\n", (double)(bench_now() - start) / 1e9, part);
	return 1;
}

int main(int argc, char **argv)
{
	static struct lanes lanes;

	parts = argc > 1 ? argv + 1 : NULL;
	report_begin();
	if (wanted("open"))
		part_open();
	bench_yield();
	if (wanted("cache"))
		part_cache();
	if (wanted("demand"))
		part_demand();
	if (wanted("match"))
		part_match();
	if (wanted("message"))
		part_message();
	if (wanted("discover"))
		part_discover();
	lanes_fork(&lanes);
	lanes_open(&lanes);
	if (wanted("register"))
		part_register(&lanes);
	if (wanted("alive"))
		part_alive(&lanes);
	if (wanted("rawkey"))
		part_rawkey(&lanes);
	lanes_connect(&lanes);
	if (wanted("completions"))
		part_completions(&lanes);
	if (wanted("access"))
		part_access(&lanes);
	if (wanted("local"))
		part_local(&lanes);
	if (wanted("device"))
		part_device(&lanes);
	else
		lanes_tell(&lanes, "", 1);
	if (wanted("atomic"))
		part_atomic(&lanes);
	if (wanted("beside"))
		part_beside(&lanes);
	if (wanted("event"))
		part_event(&lanes);
	else
		lanes_tell(&lanes, "", 1);
	if (wanted("agent"))
		part_agent(&lanes);
	else
		lanes_tell(&lanes, "", 1);
	if (wanted("peers"))
		part_peers(&lanes);
	else
		lanes_tell(&lanes, "", 1);
	lanes_close(&lanes);
	report_add("\nlibfabric: %s.\n", lanes_other_version(&lanes));
	return report_end(stdout) ? 1 : 0;
}

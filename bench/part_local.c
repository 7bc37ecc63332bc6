/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local buffers of one endpoint whose domain does not ask for registered ones, but can use
 * them: with a descriptor, and without. The peer is the one of LANE_NATIVE.
 */
#include "parts.h"

#define MODE (FAB_NATIVE & ~FI_MR_LOCAL)

enum { DESC, NONE, AGAIN, WAYS };

struct size {
	size_t bytes;
	unsigned times; /* a round */
	int rounds;
	const char *name;
};

static const struct size sizes[] = {
	{ 65536, 32, 9, "64 KiB" },
	{ 1048576, 16, 5, "1 MiB" },
};

static void set_ways(struct lanes *lanes, struct fab *fab, struct lane ways[WAYS])
{
	for (int i = 0; i < WAYS; i++) {
		ways[i].fab = fab;
		ways[i].access = lanes->lane[LANE_NATIVE].access;
		ways[i].access.write = 1;
		ways[i].access.use_desc = i != NONE;
		ways[i].access.yield = 1;
		ways[i].access.buf = lanes->buf;
		ways[i].access.len = sizes[0].bytes;
		ways[i].access.depth = 1;
		ways[i].access.times = 1;
	}
	/* Connects. */
	lane_access(&ways[DESC]);
}

static void add_row(struct lane ways[WAYS], const struct size *size, unsigned depth)
{
	struct bench_series series[WAYS];
	double desc, ratio;

	for (int i = 0; i < WAYS; i++) {
		struct work_access *access = &ways[i].access;

		access->yield = 0;
		access->len = size->bytes;
		access->depth = depth;
		access->times = size->times;
		series[i] = (struct bench_series){ .work = lane_access, .arg = &ways[i] };
	}
	bench_rounds(series, WAYS, size->rounds);
	desc = bench_middle(series[DESC].ns, size->rounds);
	ratio = bench_middle(series[NONE].ns, size->rounds) / desc;
	report_add("| write | %s | %u |", size->name, depth);
	report_ratio(ratio);
	report_ratio(bench_middle(series[AGAIN].ns, size->rounds) / desc);
	report_add("\n");
	report_target(1.01, ratio, "write of %s, %u in flight, unregistered / with a descriptor",
		      size->name, depth);
}

void part_local(struct lanes *lanes)
{
	static struct lane ways[WAYS];
	static struct fab fab;

	lanes_join(lanes, &fab, MODE, FI_ATOMIC);
	set_ways(lanes, &fab, ways);
	report_add("\n## Writes from one unregistered buffer\n\n"
		   "The modes of *native* without `FI_MR_LOCAL`, so that a descriptor is optional "
		   "but used if given:\n"
		   "the same buffer, again and again, without a descriptor compared with one.\n\n"
		   "| | length | in flight | unregistered / descriptor | descriptor again / "
		   "descriptor |\n"
		   "| --- | --- | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		add_row(ways, &sizes[i], 1);
		add_row(ways, &sizes[i], WORK_DEPTH);
	}
}

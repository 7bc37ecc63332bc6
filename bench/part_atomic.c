/* SPDX-License-Identifier: BSD-2-Clause */
#include "parts.h"

#define TIMES 96u
#define ROUNDS 15

static void add_row(struct lanes *lanes, unsigned depth)
{
	static const enum lane_id shown[] = { LANE_NATIVE, LANE_DEFAULT, LANE_AGAIN };
	struct fab *other = lanes->lane[LANE_OTHER].fab;
	double ratio[LANES];

	for (enum lane_id id = 0; id < LANES; id++) {
		struct work_access *access = &lanes->lane[id].access;

		access->fetch_add = 1;
		access->buf = lanes->buf;
		access->len = 8;
		access->depth = depth;
		access->times = TIMES;
	}
	/* Opened without FI_ATOMIC, with which it registers nothing twice. */
	lanes->lane[LANE_OTHER].fab = NULL;
	lanes_run(lanes, lane_access, ROUNDS, ratio);
	lanes->lane[LANE_OTHER].fab = other;
	for (enum lane_id id = 0; id < LANES; id++)
		lanes->lane[id].access.fetch_add = 0;
	report_add("| fetch-and-add | %u |", depth);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		report_ratio(ratio[shown[i]]);
	report_add("\n");
	if (depth == 1) {
		report_target(1.035, ratio[LANE_NATIVE],
			      "fetch-and-add, one at a time, native / raw");
		report_target(1.08, ratio[LANE_DEFAULT] / ratio[LANE_NATIVE],
			      "fetch-and-add, one at a time, default / native");
	} else {
		report_target(1.05, ratio[LANE_NATIVE], "fetch-and-add, %u in flight, native / raw",
			      depth);
	}
}

void part_atomic(struct lanes *lanes)
{
	report_add("\n## Atomic operations\n\n"
		   "`IBV_WR_ATOMIC_FETCH_AND_ADD` compared with `fi_fetch_atomic` with FI_SUM on a "
		   "64-bit integer.\n"
		   "\n"
		   "| | in flight | native / raw | default / raw | raw again / raw |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	add_row(lanes, 1);
	add_row(lanes, WORK_DEPTH);
}

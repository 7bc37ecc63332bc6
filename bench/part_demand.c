/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is pinned on demand, from registration to close; measured by cost_demand.c. */
#include "cost.h"
#include "parts.h"

static void add_life(const char *mappings, unsigned pins, double ratio)
{
	report_add("| %s | %u |", mappings, pins);
	report_ratio(ratio);
	report_add("\n");
}

static void add_unmap(double alone, double beside)
{
	double ratio = beside / alone;

	report_add("\n`munmap` of a page of a region that a peer has accessed, with 1000 more such "
		   "regions elsewhere,\n"
		   "compared with the same without them: %.3f.\n",
		   ratio);
	report_target(1.5, ratio, "munmap of a pinned region, 1000 pinned elsewhere / none");
}

void part_demand(void)
{
	double cost[COST_DEMAND];

	cost_read("cost_demand", cost, COST_DEMAND);
	report_add("\n## Memory that is pinned on demand\n\n"
		   "In *default*, the cost that registration saves has to be paid at a peer's "
		   "first access. For a\n"
		   "region of 4 KiB, `fi_mr_reg`, a peer's write of 8 B, which asks the target's "
		   "agent and makes it\n"
		   "pin the page, and `fi_close` are compared with `ibv_reg_mr`, the write, and "
		   "`ibv_dereg_mr`. Target\n"
		   "and initiator are in one process, which has few mappings or 30000 more, and "
		   "the given number of\n"
		   "other pinned regions.\n\n"
		   "| mappings | other pins | default / raw |\n| --- | ---: | ---: |\n");
	add_life("few", 1, cost[LIFE]);
	add_life("few", 1000, cost[LIFE_PINS]);
	add_life("30000", 1, cost[LIFE_MAPS]);
	add_life("30000", 1000, cost[LIFE_BOTH]);
	add_unmap(cost[UNMAP_ALONE], cost[UNMAP_BESIDE]);
}

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

static void add_told(double ratio)
{
	report_add("\nA write of 8 B to each of the 1000 regions after a page of another one was "
		   "unmapped, compared with\nthe same before: %.3f.\n",
		   ratio);
	report_target(1.05, ratio,
		      "accesses to 1000 regions after another one was unmapped / before");
}

static void add_lease(const char *memory, const char *mappings, const double *ratio)
{
	report_add("| %s | %s |", memory, mappings);
	report_ratio(ratio[0]);
	report_ratio(ratio[1]);
	report_add("\n");
	report_target(10, ratio[0],
		      "write of 8 B to %s memory, %s mappings, 1 in flight, default / raw", memory,
		      mappings);
	report_target(3, ratio[1],
		      "write of 8 B to %s memory, %s mappings, %d in flight, default / raw", memory,
		      mappings, WORK_DEPTH);
}

static void add_leases(const char *memory, const char *program)
{
	double cost[COST_LEASE];

	cost_read(program, cost, COST_LEASE);
	add_lease(memory, "few", &cost[LEASE_FEW]);
	add_lease(memory, "1000 more", &cost[LEASE_1000]);
	add_lease(memory, "30000 more", &cost[LEASE_30000]);
}

static void part_leases(void)
{
	report_add(
		"\n## Memory that cannot be watched\n\n"
		"Shared memory can be changed by another process, and without a monitor "
		"(`FI_MR_CACHE_MONITOR=disabled`)\nany memory can change unseen. So in "
		"*default* the pages are pinned for the accesses that have begun,\nand "
		"given back when these are done. Writes of 8 B to one page, target and "
		"initiator in one process:\n\n"
		"| memory | mappings | 1 in flight, default / raw | %d in flight, default / raw |\n"
		"| --- | --- | ---: | ---: |\n",
		WORK_DEPTH);
	add_leases("shared", "cost_lease");
	add_leases("unmonitored", "cost_lease disabled");
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
	add_told(cost[TOLD]);
	part_leases();
}

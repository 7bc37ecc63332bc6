/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo with many devices; measured by cost_discover.c. */
#include "cost.h"
#include "parts.h"

void part_discover(void)
{
	double cost[COST_DISCOVER];

	cost_read("cost_discover", cost, COST_DISCOVER);
	report_add("\n## Discovery\n\n"
		   "fi_getinfo and fi_freeinfo, in thousands of instructions:\n\n"
		   "| devices | asked for | |\n"
		   "| ---: | --- | ---: |\n"
		   "| 1 | any | %.0f |\n"
		   "| %d | any | %.0f |\n"
		   "| %d | the address of one of them (`FI_SOURCE`) | %.0f |\n",
		   cost[DISCOVER_ONE], COST_DEVICES, cost[DISCOVER_MANY], COST_DEVICES,
		   cost[DISCOVER_SOURCE]);
	report_target(600, cost[DISCOVER_MANY],
		      "fi_getinfo with %d devices, thousands of instructions", COST_DEVICES);
	report_target(600, cost[DISCOVER_SOURCE],
		      "fi_getinfo with %d devices and FI_SOURCE, thousands of instructions",
		      COST_DEVICES);
}

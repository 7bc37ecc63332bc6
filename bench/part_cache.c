/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of local buffers; measured by cost_cache.c. */
#include "cost.h"
#include "parts.h"

static void add_hits(const double *cost)
{
	report_add("\n## Unregistered buffers\n\n"
		   "For each local buffer that the application did not register, the library keeps "
		   "one kernel\n"
		   "region, of 4 KiB here. *Hit*: the instructions to find the region, to become "
		   "its user and\n"
		   "to release it again (`mrf_cache_get` and `mrf_cache_put`, which only the "
		   "library can call;\n"
		   "the program that measures this is linked with the library's objects).\n\n"
		   "| kept | hit |\n| ---: | ---: |\n| 1000 | %.0f |\n| 100000 | %.0f |\n",
		   cost[HIT_FEW], cost[HIT_MANY]);
	report_target(260, cost[HIT_FEW], "instructions of a hit, 1000 buffers kept");
	report_target(340, cost[HIT_MANY], "instructions of a hit, 100000 buffers kept");
}

static void add_miss(const char *length, const double *cost)
{
	double room = cost[OUR_REG] / cost[RAW_REG], full = cost[OUR_BOTH] / cost[RAW_BOTH];
	const double most = 1.40;

	report_add("| %s |", length);
	report_ratio(room);
	report_ratio(full);
	report_ratio(cost[OUR_BOTH] / cost[RAW_REG]);
	report_ratio(cost[RAW_BOTH] / cost[RAW_REG]);
	report_add("\n");
	report_target(most, room, "a miss of %s, with room / registering", length);
	report_target(most, full, "a miss of %s that evicts / registering and closing", length);
}

static void add_misses(const double *cost)
{
	report_add("\n*Miss*: the same for a buffer that was not seen before: it is registered, "
		   "its memory is\n"
		   "watched, and its region is kept. *With room*: no other region has to be "
		   "dropped for it.\n"
		   "*That evicts*: the oldest of 1000 is dropped, so one kernel region is made and "
		   "one is closed.\n\n"
		   "| length | with room / reg | that evicts / reg and dereg | that evicts / reg | "
		   "reg and dereg / reg |\n| --- | ---: | ---: | ---: | ---: |\n");
	add_miss("4 KiB", &cost[MISS_SMALL]);
	add_miss("64 KiB", &cost[MISS_LARGE]);
}

static void add_maps(const double *cost)
{
	report_add("\nThe cost for the rest of the application: its own `mmap` and `munmap` of 64 "
		   "KiB, of which\n"
		   "no buffer was ever kept. *Before*: a domain is open, but no buffer has been "
		   "kept yet, so\n"
		   "these calls are not watched yet.\n\n"
		   "| | 100000 kept / 1 kept | 1 kept / before | 100000 kept / before |\n"
		   "| --- | ---: | ---: | ---: |\n");
	for (int i = 0; i < 2; i++) {
		const char *what = i ? "a page touched" : "no page touched";
		double before = cost[MAP_BEFORE + i], one = cost[MAP_ONE + i];
		double many = cost[MAP_MANY + i];

		report_add("| %s |", what);
		report_ratio(many / one);
		report_ratio(one / before);
		report_ratio(many / before);
		report_add("\n");
		report_target(1.05, many / before,
			      "the application's mmap and munmap, %s, 100000 buffers kept / "
			      "before",
			      what);
	}
}

void part_cache(void)
{
	double cost[COST_CACHE];

	cost_read("cost_cache", cost, COST_CACHE);
	add_hits(cost);
	add_misses(cost);
	add_maps(cost);
}

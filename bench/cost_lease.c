/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses to memory that cannot be watched, so that each is made under a lease: shared memory,
 * or with FI_MR_CACHE_MONITOR=disabled any. Started by mrfab_bench (part_demand.c), for which it
 * prints ratios to raw verbs, in the order of enum cost_lease.
 *
 * Usage: cost_lease [MONITOR]   the value of FI_MR_CACHE_MONITOR; the memory is private then
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "cost.h"
#include "cost_pair.h"

#define TIMES 64u
#define ROUNDS 6

static struct work_access raw_one;

static void ours(void *arg)
{
	(void)arg;
	fab_access(&pair_initiator, &pair_access);
}

static void raw(void *arg)
{
	(void)arg;
	raw_access(&pair_raw_initiator, &raw_one);
}

static double cost_of(unsigned depth)
{
	struct bench_series series[] = { { .work = ours }, { .work = raw } };

	pair_access.depth = raw_one.depth = depth;
	pair_access.times = raw_one.times = TIMES;
	bench_rounds(series, 2, ROUNDS);
	return bench_middle(series[0].ns, ROUNDS) / bench_middle(series[1].ns, ROUNDS);
}

static void *map_region(int flags)
{
	uint8_t *at = mmap(NULL, PAIR_PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	bench_must_errno("mmap", at != MAP_FAILED);
	at[0] = 1;
	return at;
}

int main(int argc, char **argv)
{
	static const unsigned more[] = { 0, 1000, 30000 };
	double cost[COST_LEASE];
	uint8_t *region, *local = bench_alloc(PAIR_PAGE);
	int n = 0;

	if (argc > 1)
		setenv("FI_MR_CACHE_MONITOR", argv[1], 1);
	pair_allow_mappings();
	region = map_region(argc > 1 ? MAP_PRIVATE : MAP_SHARED);
	bench_eager();
	pair_connect(region, local);
	bench_yield();
	raw_one = pair_access;
	raw_one.remote.addr = (uintptr_t)region;
	raw_one.remote.key = pair_raw_target.mr->rkey;
	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		if (i)
			pair_add_mappings(more[i] - more[i - 1]);
		cost_says(i ? "leases, more mappings" : "leases");
		cost[n++] = cost_of(1);
		cost[n++] = cost_of(WORK_DEPTH);
	}
	return cost_print(cost, COST_LEASE);
}

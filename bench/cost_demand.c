/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What memory costs that is pinned on demand, where a process has many mappings and where
 * much else is pinned. Target and initiator are two domains of this process, for nobody
 * has to be told of a new region then; raw has two ends here, too. Started by mrfab_bench
 * (part_demand.c), for which it prints numbers, in the order of enum cost_demand.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cost.h"
#include "cost_pair.h"

#define PAGE PAIR_PAGE
#define PINS 1000u
#define MAPPINGS 30000u
#define TIMES 100u
#define UNMAPS 40u
#define ROUNDS 4

static uint8_t *region, *local;

/* --- a region from its registration to its end ----------------------------------------- */

static void live_ours(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TIMES; i++) {
		struct fid_mr *mr = fab_register_one(&pair_target, region, PAGE);

		pair_access_fab(mr);
		bench_must("fi_close", fi_close(&mr->fid));
	}
}

static void live_raw(void *arg)
{
	struct work_access access = pair_access;

	(void)arg;
	for (unsigned i = 0; i < TIMES; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pair_raw_target.pd, region, PAGE, RAW_RIGHTS);

		bench_must_errno("ibv_reg_mr", !!mr);
		access.remote.addr = (uintptr_t)region;
		access.remote.key = mr->rkey;
		raw_access(&pair_raw_initiator, &access);
		bench_must("ibv_dereg_mr", ibv_dereg_mr(mr));
	}
}

/* ours / raw */
static double cost_of_life(const char *what)
{
	struct bench_series series[] = { { .work = live_ours }, { .work = live_raw } };

	cost_says(what);
	bench_rounds(series, 2, ROUNDS);
	return bench_middle(series[0].ns, ROUNDS) / bench_middle(series[1].ns, ROUNDS);
}

/* --- mappings -------------------------------------------------------------------------- */

/* One page in a mapping of its own, among others that cannot be accessed. */
static uint8_t *map_page(void)
{
	uint8_t *at = pair_map(3 * PAGE);

	bench_must_errno("mprotect", !mprotect(at, PAGE, PROT_NONE));
	bench_must_errno("mprotect", !mprotect(at + 2 * PAGE, PAGE, PROT_NONE));
	at[PAGE] = 1;
	return at + PAGE;
}

/* --- pins ------------------------------------------------------------------------------ */

static struct fid_mr *pinned(uint8_t *at)
{
	struct fid_mr *mr = fab_register_one(&pair_target, at, PAGE);

	pair_access_fab(mr);
	return mr;
}

static struct fid_mr *pins[PINS];

static void add_pins(unsigned from, unsigned to)
{
	cost_says("pins");
	for (; from < to; from++)
		pins[from] = pinned(map_page());
}

static void end_pins(unsigned from, unsigned to)
{
	for (; from < to; from++)
		bench_must("fi_close", fi_close(&pins[from]->fid));
}

/* The munmap alone; the pin goes with it. */
static double unmap_one(void)
{
	uint8_t *at = map_page();
	struct fid_mr *mr = pinned(at);
	uint64_t start = bench_now();

	bench_must_errno("munmap", !munmap(at, PAGE));
	start = bench_now() - start;
	bench_must("fi_close", fi_close(&mr->fid));
	return (double)start;
}

static double cost_of_unmap(const char *what)
{
	double cost[ROUNDS];

	cost_says(what);
	for (int round = -1; round < ROUNDS; round++) {
		int slot = round < 0 ? 0 : round;

		cost[slot] = 0;
		for (unsigned i = 0; i < UNMAPS; i++)
			cost[slot] += unmap_one();
	}
	return bench_middle(cost, ROUNDS) / UNMAPS;
}

static double access_all(void)
{
	uint64_t start = bench_now();

	for (unsigned i = 0; i < PINS; i++)
		pair_access_fab(pins[i]);
	return (double)(bench_now() - start);
}

/* What the others cost once the initiator has been told of one. */
static double cost_of_one_gone(void)
{
	double before, after;

	cost_says("one of many regions unmapped");
	access_all();
	before = access_all();
	unmap_one();
	usleep(10000);
	after = access_all();
	return after / before;
}

int main(void)
{
	double cost[COST_DEMAND];

	/* So that half of them are as many as are made here. */
	pair_allow_mappings();
	region = bench_alloc(PAGE);
	local = bench_alloc(PAGE);
	/* The agents run when they are woken. */
	bench_eager();
	pair_connect(region, local);
	bench_yield();
	cost[UNMAP_ALONE] = cost_of_unmap("munmap, nothing else pinned");
	add_pins(0, 1);
	cost[LIFE] = cost_of_life("few mappings");
	add_pins(1, PINS);
	cost[LIFE_PINS] = cost_of_life("few mappings, much pinned");
	cost[UNMAP_BESIDE] = cost_of_unmap("munmap, much else pinned");
	cost[TOLD] = cost_of_one_gone();
	pair_add_mappings(MAPPINGS);
	cost[LIFE_BOTH] = cost_of_life("many mappings, much pinned");
	end_pins(1, PINS);
	cost[LIFE_MAPS] = cost_of_life("many mappings");
	return cost_print(cost, COST_DEMAND);
}

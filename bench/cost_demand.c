/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What memory costs that is pinned on demand, where a process has many mappings and where
 * much else is pinned. Target and initiator are two domains of this process, for nobody
 * has to be told of a new region then; raw has two ends here, too. Started by mrfab_bench
 * (part_demand.c), for which it prints numbers, in the order of enum cost_demand.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "cost.h"
#include "fab.h"
#include "raw.h"

#define PAGE 4096u
#define PINS 1000u
#define MAPPINGS 30000u
#define TIMES 100u
#define UNMAPS 40u
#define ROUNDS 4

static struct fab target, initiator;
static struct raw raw_target, raw_initiator;
static struct work_access access_one; /* what the initiator does to a region */
static uint8_t *region, *local;

/* --- both ends ------------------------------------------------------------------------ */

static void *accept_raw(void *arg)
{
	raw_accept(&raw_target, arg, PAGE);
	return NULL;
}

static void connect_raw(void)
{
	pthread_t thread;
	uint16_t port;

	raw_open(&raw_target);
	raw_open(&raw_initiator);
	port = raw_listen(&raw_target);
	bench_must("pthread_create", pthread_create(&thread, NULL, accept_raw, region));
	raw_connect(&raw_initiator, port, local, PAGE);
	bench_must("pthread_join", pthread_join(thread, NULL));
}

static void access_fab(struct fid_mr *mr)
{
	access_one.remote.key = fi_mr_key(mr);
	access_one.remote.addr = 0;
	fab_access(&initiator, &access_one);
}

static void connect_fab(void)
{
	char name[FAB_NAME_LEN];

	bench_must("fab_open", fab_open(&target, &fab_ours, 0, 0, region, PAGE));
	bench_must("fab_open", fab_open(&initiator, &fab_ours, 0, 0, local, PAGE));
	fab_name(&target, name);
	fab_insert(&initiator, name);
	access_one = (struct work_access){
		.write = 1, .buf = local, .len = 8, .depth = 1, .times = 1, .yield = 1
	};
	access_fab(target.mr);
}

/* --- a region from its registration to its end ----------------------------------------- */

static void live_ours(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TIMES; i++) {
		struct fid_mr *mr = fab_register_one(&target, region, PAGE);

		access_fab(mr);
		bench_must("fi_close", fi_close(&mr->fid));
	}
}

static void live_raw(void *arg)
{
	struct work_access access = access_one;

	(void)arg;
	for (unsigned i = 0; i < TIMES; i++) {
		struct ibv_mr *mr = ibv_reg_mr(raw_target.pd, region, PAGE, RAW_RIGHTS);

		bench_must_errno("ibv_reg_mr", !!mr);
		access.remote.addr = (uintptr_t)region;
		access.remote.key = mr->rkey;
		raw_access(&raw_initiator, &access);
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

static uint8_t *map(size_t len)
{
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bench_must_errno("mmap", at != MAP_FAILED);
	return at;
}

/* One page in a mapping of its own, among others that cannot be accessed. */
static uint8_t *map_page(void)
{
	uint8_t *at = map(3 * PAGE);

	bench_must_errno("mprotect", !mprotect(at, PAGE, PROT_NONE));
	bench_must_errno("mprotect", !mprotect(at + 2 * PAGE, PAGE, PROT_NONE));
	at[PAGE] = 1;
	return at + PAGE;
}

static void add_mappings(unsigned n)
{
	uint8_t *at = map((size_t)n * PAGE);

	for (unsigned i = 0; i < n; i += 2)
		bench_must_errno("mprotect", !mprotect(at + (size_t)i * PAGE, PAGE, PROT_NONE));
}

/* Twice the usual number, so that half of them are as many as are made here. */
static void allow_mappings(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "we");

	bench_must_errno("max_map_count", file && fprintf(file, "131060\n") > 0 && !fclose(file));
}

/* --- pins ------------------------------------------------------------------------------ */

static struct fid_mr *pinned(uint8_t *at)
{
	struct fid_mr *mr = fab_register_one(&target, at, PAGE);

	access_fab(mr);
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

int main(void)
{
	double cost[COST_DEMAND];

	allow_mappings();
	region = bench_alloc(PAGE);
	local = bench_alloc(PAGE);
	/* The agents run when they are woken. */
	bench_eager();
	connect_raw();
	connect_fab();
	bench_yield();
	cost[UNMAP_ALONE] = cost_of_unmap("munmap, nothing else pinned");
	add_pins(0, 1);
	cost[LIFE] = cost_of_life("few mappings");
	add_pins(1, PINS);
	cost[LIFE_PINS] = cost_of_life("few mappings, much pinned");
	cost[UNMAP_BESIDE] = cost_of_unmap("munmap, much else pinned");
	add_mappings(MAPPINGS);
	cost[LIFE_BOTH] = cost_of_life("many mappings, much pinned");
	end_pins(1, PINS);
	cost[LIFE_MAPS] = cost_of_life("many mappings");
	return cost_print(cost, COST_DEMAND);
}

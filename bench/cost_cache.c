/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the cache of local buffers costs, as the library's own code meets it: this program
 * is linked with the library's objects, because mrf_cache_get and mrf_cache_put are not
 * exported. The device is a real one. Started by mrfab_bench (part_cache.c), for which it
 * prints numbers, in the order of enum cost_cache.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_ext_mrfab.h>
#include "base/env.h"
#include "buf/cache.h"
#include "domain/domain.h"
#include "cost.h"
#include "fab.h"
#include "raw.h"

#define PAGE 4096u
#define LARGE_PAGES 16u
#define FEW 1000u
#define MANY 100000u
#define LOOKS MANY
#define MAPS 5000u
#define NEW 2000u
#define ROUNDS 3
/* Steps of this many entries meet all of 1,000, or of 100,000. */
#define STRIDE 7919u

static uint8_t *memory; /* MANY pages */
static struct mrf_mr_space *space;
static struct raw raw;

/* --- the cache ---------------------------------------------------------------------- */

static struct mrf_cache *cache_new(unsigned count)
{
	struct mrf_cache *cache;
	char text[16];

	snprintf(text, sizeof(text), "%u", count);
	setenv("FI_MR_CACHE_MAX_COUNT", text, 1);
	setenv("FI_MR_CACHE_MAX_SIZE", "-1", 1);
	mrf_env_reload();
	cache = mrf_cache_new(space);
	bench_must_errno("mrf_cache_new", !!cache);
	return cache;
}

/* The ith buffer of so many pages. */
static inline void use(struct mrf_cache *cache, unsigned i, unsigned pages)
{
	struct mrf_cached *entry;

	bench_must("mrf_cache_get", mrf_cache_get(cache, memory + (size_t)i * pages * PAGE,
						  (size_t)pages * PAGE, true, &entry));
	mrf_cache_put(entry);
}

static void use_range(struct mrf_cache *cache, unsigned from, unsigned to, unsigned pages)
{
	for (; from < to; from++)
		use(cache, from, pages);
}

/* So many are kept, and nothing else has been. */
static void must_keep(struct mrf_cache *cache, uint64_t entries)
{
	struct fi_mrfab_cache_stats stats;

	mrf_cache_stats(cache, &stats);
	bench_must("entries that are kept", stats.entries != entries);
}

/* --- hits --------------------------------------------------------------------------- */

struct hits {
	struct mrf_cache *cache;
	unsigned entries;
};

static void hit(void *arg)
{
	const struct hits *hits = arg;

	for (unsigned i = 0, at = 0; i < LOOKS; i++) {
		use(hits->cache, at, 1);
		at = (at + STRIDE) % hits->entries;
	}
}

/* The loop alone. */
static void look_nowhere(void *arg)
{
	const struct hits *hits = arg;

	for (unsigned i = 0, at = 0; i < LOOKS; i++) {
		__asm__ volatile("" : : "r"(memory + (size_t)at * PAGE) : "memory");
		at = (at + STRIDE) % hits->entries;
	}
}

static double cost_of_hit(struct mrf_cache *cache, unsigned entries)
{
	struct hits hits = { .cache = cache, .entries = entries };
	struct bench_series series[] = { { .work = hit, .arg = &hits },
					 { .work = look_nowhere, .arg = &hits } };

	must_keep(cache, entries);
	bench_rounds(series, 2, ROUNDS);
	return (bench_middle(series[0].ns, ROUNDS) - bench_middle(series[1].ns, ROUNDS)) / LOOKS;
}

/* --- the application's own mappings --------------------------------------------------- */

/*
 * With MAP_NORESERVE, which nothing else has: else the kernel would join the mapping with its
 * neighbour or not, depending on what that is.
 */
static void map(void *arg)
{
	const int *touch = arg;

	for (unsigned i = 0; i < MAPS; i++) {
		uint8_t *at = mmap(NULL, LARGE_PAGES * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		bench_must_errno("mmap", at != MAP_FAILED);
		if (*touch)
			*at = 1;
		bench_must_errno("munmap", !munmap(at, LARGE_PAGES * PAGE));
	}
}

/* cost[0]: of memory that is not used; cost[1]: one page is. */
static void cost_of_maps(double cost[2])
{
	static int no, yes = 1;
	struct bench_series series[] = { { .work = map, .arg = &no },
					 { .work = map, .arg = &yes } };

	bench_rounds(series, 2, ROUNDS);
	for (int i = 0; i < 2; i++)
		cost[i] = bench_middle(series[i].ns, ROUNDS) / MAPS;
}

/* --- misses --------------------------------------------------------------------------- */

struct misses {
	unsigned pages;
	struct ibv_mr *mr[FEW + NEW];
	double ns[COST_MISSES][BENCH_MAX_ROUNDS];
};

static struct ibv_mr *reg(const struct misses *misses, unsigned i)
{
	size_t len = (size_t)misses->pages * PAGE;
	struct ibv_mr *mr = ibv_reg_mr(raw.pd, memory + i * len, len, IBV_ACCESS_LOCAL_WRITE);

	bench_must_errno("ibv_reg_mr", !!mr);
	return mr;
}

static void reg_range(struct misses *misses, unsigned from, unsigned to)
{
	for (; from < to; from++)
		misses->mr[from] = reg(misses, from);
}

static void dereg_range(struct misses *misses, unsigned from, unsigned to)
{
	for (; from < to; from++)
		bench_must("ibv_dereg_mr", ibv_dereg_mr(misses->mr[from]));
}

/* Registers one and closes the one that is FEW older, NEW times. */
static void raw_round(struct misses *misses, int round)
{
	uint64_t start;

	reg_range(misses, 0, FEW);
	start = bench_now();
	for (unsigned i = FEW; i < FEW + NEW; i++) {
		reg_range(misses, i, i + 1);
		dereg_range(misses, i - FEW, i - FEW + 1);
	}
	misses->ns[RAW_BOTH][round] = (double)(bench_now() - start);
	dereg_range(misses, NEW, FEW + NEW);
	start = bench_now();
	reg_range(misses, 0, NEW);
	misses->ns[RAW_REG][round] = (double)(bench_now() - start);
	dereg_range(misses, 0, NEW);
}

static double cost_of_new(struct mrf_cache *cache, const struct misses *misses)
{
	uint64_t start;

	use_range(cache, 0, FEW, misses->pages);
	start = bench_now();
	use_range(cache, FEW, FEW + NEW, misses->pages);
	return (double)(bench_now() - start);
}

static void our_round(struct misses *misses, int round)
{
	struct mrf_cache *full = cache_new(FEW), *roomy;

	misses->ns[OUR_BOTH][round] = cost_of_new(full, misses);
	must_keep(full, FEW);
	mrf_cache_free(full);
	roomy = cache_new(MANY);
	misses->ns[OUR_REG][round] = cost_of_new(roomy, misses);
	must_keep(roomy, FEW + NEW);
	mrf_cache_free(roomy);
}

static void cost_of_misses(unsigned pages, double cost[COST_MISSES])
{
	static struct misses misses;

	misses.pages = pages;
	for (int round = -1; round < ROUNDS; round++) {
		raw_round(&misses, round < 0 ? 0 : round);
		our_round(&misses, round < 0 ? 0 : round);
	}
	for (int i = 0; i < COST_MISSES; i++)
		cost[i] = bench_middle(misses.ns[i], ROUNDS) / NEW;
}

/* ---------------------------------------------------------------------------------------- */

static void open_all(void)
{
	static struct fab fab;

	raw_open(&raw);
	bench_must("fi_domain", fab_open_domain(&fab, &fab_ours, 0, 0));
	space = mrf_domain_mr_space(&fab.domain->fid);
}

int main(void)
{
	double cost[COST_CACHE];
	struct mrf_cache *cache;

	bench_yield();
	cost_says("mappings");
	memory = bench_alloc((size_t)MANY * PAGE);
	open_all();
	cost_of_maps(&cost[MAP_BEFORE]);
	cost_says("hits");
	cache = cache_new(MANY);
	use_range(cache, 0, 1, 1);
	cost_of_maps(&cost[MAP_ONE]);
	use_range(cache, 1, FEW, 1);
	cost[HIT_FEW] = cost_of_hit(cache, FEW);
	use_range(cache, FEW, MANY, 1);
	cost[HIT_MANY] = cost_of_hit(cache, MANY);
	cost_of_maps(&cost[MAP_MANY]);
	mrf_cache_free(cache);
	cost_says("misses");
	cost_of_misses(1, &cost[MISS_SMALL]);
	cost_of_misses(LARGE_PAGES, &cost[MISS_LARGE]);
	return cost_print(cost, COST_CACHE);
}

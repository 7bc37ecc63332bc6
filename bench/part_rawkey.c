/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a raw key from region to key: all of it is in this process. */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

#define TIMES 20000
#define ROUNDS 5
#define ROOM 512
/* Of instructions; allocating, copying and freeing takes 160 to 170. */
#define TARGET 300

struct way {
	struct fab *fab;
	uint8_t raw[ROOM];
	size_t size;
};

static void through(void *arg)
{
	struct way *way = arg;
	uint64_t base, key;

	for (unsigned i = 0; i < TIMES; i++) {
		size_t size = way->size;
		int ret = fi_mr_raw_attr(way->fab->mr, &base, way->raw, &size, 0);

		if (!ret)
			ret = fi_mr_map_raw(way->fab->domain, base, way->raw, size, &key, 0);
		if (!ret)
			ret = fi_mr_unmap_key(way->fab->domain, key);
		bench_must("raw key", ret);
	}
}

/* The least that can be done with as many bytes that somebody else has. */
static void copy(void *arg)
{
	struct way *way = arg;

	for (unsigned i = 0; i < TIMES; i++) {
		void *bytes = malloc(way->size);

		bench_must_errno("malloc", !!bytes);
		memcpy(bytes, way->raw, way->size);
		/* Else a compiler leaves all of it out. */
		__asm__ volatile("" : : "r"(bytes) : "memory");
		free(bytes);
	}
}

void part_rawkey(struct lanes *lanes)
{
	static struct way way;
	struct bench_series series[] = { { .work = through, .arg = &way },
					 { .work = copy, .arg = &way } };
	double ours, least;
	uint64_t base;

	way.fab = &lanes->fab[LANE_NATIVE];
	way.size = ROOM;
	bench_must("fi_mr_raw_attr", fi_mr_raw_attr(way.fab->mr, &base, way.raw, &way.size, 0));
	bench_rounds(series, 2, ROUNDS);
	ours = bench_middle(series[0].ns, ROUNDS) / TIMES;
	least = bench_middle(series[1].ns, ROUNDS) / TIMES;
	report_target(TARGET, ours, "instructions to get, map and unmap a raw key of %zu bytes",
		      way.size);
	report_add("\n## Raw keys\n\n"
		   "Instructions for a region of *native* with a key of %zu bytes: "
		   "`fi_mr_raw_attr`, `fi_mr_map_raw` and\n"
		   "`fi_mr_unmap_key`, compared with `malloc`, `memcpy` and `free` of as many "
		   "bytes.\n\n"
		   "| get, map and unmap | allocate, copy and free |\n"
		   "| ---: | ---: |\n"
		   "| %.0f | %.0f |\n",
		   way.size, ours, least);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a raw key from region to key: all of it is in this process. The key is mapped in
 * another domain than the region's, as an initiator does, and there is more room for it than it
 * needs.
 */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

#define TIMES 20000
#define ROUNDS 5
#define ROOM 512
/* Of instructions; allocating, copying and freeing takes 160 to 170. */
#define TARGET 400

struct way {
	struct fab *fab;	   /* of the region */
	struct fid_domain *domain; /* of an initiator */
	uint8_t raw[ROOM];
	size_t size;
};

static void through(void *arg)
{
	struct way *way = arg;
	uint64_t base, key;

	for (unsigned i = 0; i < TIMES; i++) {
		size_t size = ROOM;
		int ret = fi_mr_raw_attr(way->fab->mr, &base, way->raw, &size, 0);

		if (!ret)
			ret = fi_mr_map_raw(way->domain, base, way->raw, size, &key, 0);
		if (!ret)
			ret = fi_mr_unmap_key(way->domain, key);
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

static void add_key(struct lanes *lanes, enum lane_id id, const char *name)
{
	static struct way way;
	struct bench_series series[] = { { .work = through, .arg = &way },
					 { .work = copy, .arg = &way } };
	double ours, least;
	uint64_t base;

	way.fab = &lanes->fab[id];
	way.domain = lanes->fab[id == LANE_NATIVE ? LANE_DEFAULT : LANE_NATIVE].domain;
	way.size = ROOM;
	bench_must("fi_mr_raw_attr", fi_mr_raw_attr(way.fab->mr, &base, way.raw, &way.size, 0));
	bench_rounds(series, 2, ROUNDS);
	ours = bench_middle(series[0].ns, ROUNDS) / TIMES;
	least = bench_middle(series[1].ns, ROUNDS) / TIMES;
	report_target(TARGET, ours, "instructions to get, map and unmap a raw key, %s", name);
	report_add("| %s | %zu | %.0f | %.0f |\n", name, way.size, ours, least);
}

void part_rawkey(struct lanes *lanes)
{
	report_add(
		"\n## Raw keys\n\n"
		"Instructions for `fi_mr_raw_attr`, into a buffer of %u bytes, `fi_mr_map_raw` and\n"
		"`fi_mr_unmap_key` in another domain, compared with `malloc`, `memcpy` and `free` "
		"of as many bytes\nas the key has.\n\n"
		"| region of | bytes | get, map and unmap | allocate, copy and free |\n"
		"| --- | ---: | ---: | ---: |\n",
		ROOM);
	add_key(lanes, LANE_NATIVE, "native");
	add_key(lanes, LANE_DEFAULT, "default");
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
#include <stdlib.h>
#include "parts.h"

/*
 * Every 20 ms or so the kernel frees what was closed, all at once. A few long rounds even
 * that out better than many.
 */

/* --- one region at a time -------------------------------------------------------- */

#define ROUNDS 5

struct length {
	size_t bytes;
	unsigned times; /* a round */
	const char *name;
};

static const struct length lengths[] = {
	{ 4096, 5000, "4 KiB" },
	{ 65536, 1500, "64 KiB" },
	{ 1048576, 200, "1 MiB" },
};

static void set_work(struct lanes *lanes, size_t len, unsigned times)
{
	for (enum lane_id id = 0; id < LANES; id++)
		lanes->lane[id].reg =
			(struct work_register){ .buf = lanes->buf, .len = len, .times = times };
	lanes->lane[LANE_UNREGISTERED].reg.times = 0; /* is LANE_DEFAULT */
}

static void add_length(struct lanes *lanes, const struct length *length)
{
	static const enum lane_id shown[] = { LANE_DEFAULT, LANE_NATIVE, LANE_OTHER, LANE_AGAIN };
	double ratio[LANES];

	set_work(lanes, length->bytes, length->times);
	lanes_run(lanes, lane_register, ROUNDS, ratio);
	report_add("| %s |", length->name);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		report_ratio(ratio[shown[i]]);
	report_add("\n");
	if (length->bytes > 4096)
		return;
	report_target(1.03, ratio[LANE_DEFAULT], "register and close 4 KiB, default / raw");
	report_target(1.03, ratio[LANE_NATIVE], "register and close 4 KiB, native / raw");
}

void part_register(struct lanes *lanes)
{
	report_add("\n## Register and close a region\n\n"
		   "`ibv_reg_mr` and `ibv_dereg_mr` compared with `fi_mr_reg` and `fi_close`, with "
		   "all remote access rights.\n\n"
		   "| length | default / raw | native / raw | libfabric / raw | "
		   "raw again / raw |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		add_length(lanes, &lengths[i]);
}

/* --- many regions alive ---------------------------------------------------------- */

#define FEW 100
#define MANY 100000
#define ALIVE_ROUNDS 4
#define ALIVE_TIMES 5000

static const enum lane_id alive_lanes[] = { LANE_RAW, LANE_DEFAULT, LANE_NATIVE, LANE_AGAIN };
#define NALIVE (sizeof(alive_lanes) / sizeof(alive_lanes[0]))

struct alive {
	struct lane *lane;
	void **regions; /* MANY of struct ibv_mr or struct fid_mr; NULL: those of raw */
	unsigned n;
	size_t bytes;	  /* user memory that filling took */
	uint64_t longest; /* ns: of one registration while filling */
};

static void *register_one(struct lane *lane)
{
	struct ibv_mr *mr;

	if (lane->fab)
		return fab_register_one(lane->fab, lane->reg.buf, lane->reg.len);
	mr = ibv_reg_mr(lane->raw->pd, lane->reg.buf, lane->reg.len, RAW_RIGHTS);
	bench_must_errno("ibv_reg_mr", !!mr);
	return mr;
}

static size_t heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void fill(struct alive *alive, unsigned n)
{
	size_t before = heap();

	for (; alive->regions && alive->n < n; alive->n++) {
		uint64_t start = bench_now(), ns;

		alive->regions[alive->n] = register_one(alive->lane);
		ns = bench_now() - start;
		alive->longest = ns > alive->longest ? ns : alive->longest;
	}
	alive->bytes += heap() - before;
}

static void empty(struct alive *alive)
{
	while (alive->n) {
		void *region = alive->regions[--alive->n];

		if (alive->lane->fab)
			bench_must("fi_close", fi_close(&((struct fid_mr *)region)->fid));
		else
			bench_must("ibv_dereg_mr", ibv_dereg_mr(region));
	}
	free(alive->regions);
}

/* Fills all lanes to n regions, then measures one more in each. */
static void measure(struct alive *alive, unsigned n, double middle[NALIVE])
{
	struct bench_series series[NALIVE];

	for (size_t i = 0; i < NALIVE; i++) {
		fill(&alive[i], n);
		series[i] = (struct bench_series){ .work = lane_register, .arg = alive[i].lane };
	}
	bench_rounds(series, NALIVE, ALIVE_ROUNDS);
	for (size_t i = 0; i < NALIVE; i++)
		middle[i] = bench_middle(series[i].ns, ALIVE_ROUNDS);
}

static void add_ratios(const char *what, const double over[NALIVE], const double under[NALIVE])
{
	report_add("| %s |", what);
	for (size_t i = 0; i < NALIVE; i++)
		report_ratio(over[i] / under[i]);
	report_add("\n");
}

static void add_bytes(const struct alive *alive)
{
	report_add("| bytes of heap per region |");
	for (size_t i = 0; i < NALIVE - 1; i++)
		report_add(" %.0f |", (double)alive[i].bytes / MANY);
	report_add(" |\n");
}

static void add_longest(const struct alive *alive)
{
	report_add("| the longest of them, ms |");
	for (size_t i = 0; i < NALIVE - 1; i++)
		report_add(" %.2f |", (double)alive[i].longest / 1e6);
	report_add(" |\n");
	report_target(1.0, ((double)alive[1].longest - (double)alive[0].longest) / 1e6,
		      "ms: the longest of %u registrations, default, beyond raw's", MANY);
}

/* Growth that the kernel has no part in. */
static void add_target(const char *name, const double few[NALIVE], const double many[NALIVE],
		       size_t i)
{
	report_target(1.02, many[i] / many[0] / (few[i] / few[0]),
		      "the same, %s / raw, with %u regions alive / with %u", name, MANY, FEW);
}

static void add_alive(const struct alive *alive, const double few[NALIVE],
		      const double many[NALIVE])
{
	double raw_few[NALIVE], raw_many[NALIVE];

	for (size_t i = 0; i < NALIVE; i++) {
		raw_few[i] = few[0];
		raw_many[i] = many[0];
	}
	report_add("\n## Many regions alive\n\n"
		   "Registering and closing one more region of 4 KiB while 100 or 100000 "
		   "exist.\n\n"
		   "| | raw | default | native | raw again |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	add_ratios("100 alive / raw", few, raw_few);
	add_ratios("100000 alive / raw", many, raw_many);
	add_ratios("100000 alive / 100 alive", many, few);
	add_bytes(alive);
	add_longest(alive);
	add_target("default", few, many, 1);
	add_target("native", few, many, 2);
}

void part_alive(struct lanes *lanes)
{
	struct alive alive[NALIVE] = { 0 };
	double few[NALIVE], many[NALIVE];

	set_work(lanes, 4096, ALIVE_TIMES);
	for (size_t i = 0; i < NALIVE; i++) {
		alive[i].lane = &lanes->lane[alive_lanes[i]];
		if (alive_lanes[i] != LANE_AGAIN)
			alive[i].regions = bench_alloc(MANY * sizeof(void *));
	}
	measure(alive, FEW, few);
	measure(alive, MANY, many);
	add_alive(alive, few, many);
	for (size_t i = 0; i < NALIVE; i++)
		empty(&alive[i]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include "parts.h"

struct size {
	size_t bytes;
	unsigned times; /* a round */
	int rounds;
	const char *name;
	double read, write; /* at most, native / raw, one at a time */
};

static const struct size sizes[] = {
	{ 8, 96, 15, "8 B", 1.02, 1.03 },	 { 256, 96, 15, "256 B", 1.02, 1.02 },
	{ 4096, 96, 15, "4 KiB", 1.015, 1.02 },	 { 65536, 32, 9, "64 KiB", 1.05, 1.05 },
	{ 1048576, 16, 5, "1 MiB", 1.05, 1.05 },
};

static const struct size few[] = {
	{ 8, 96, 15, "8 B", NAN, NAN },
	{ 64, 96, 15, "64 B", NAN, NAN },
	{ 256, 96, 15, "256 B", NAN, NAN },
};

/*
 * Unregistered against native. A read's data are delivered without the endpoint's lock, which
 * takes two turns more.
 */
#define FEW_LIMIT(write) ((write) ? 1.04 : 1.05)

static void set_access(struct lanes *lanes, int write, const struct size *size, unsigned depth)
{
	for (enum lane_id id = 0; id < LANES; id++) {
		struct work_access *access = &lanes->lane[id].access;

		access->write = write;
		access->buf = lanes->buf;
		access->len = size->bytes;
		access->depth = depth;
		access->times = size->times;
		access->use_inline = write && size->bytes <= RAW_INLINE;
	}
}

static void add_inject_row(struct lanes *lanes, const struct size *size)
{
	static const enum lane_id shown[] = { LANE_NATIVE, LANE_DEFAULT, LANE_OTHER, LANE_AGAIN };
	double ratio[LANES];

	set_access(lanes, 1, size, WORK_DEPTH);
	for (enum lane_id id = 0; id < LANES; id++)
		lanes->lane[id].access.inject = 1;
	lanes_run(lanes, lane_access, size->rounds, ratio);
	for (enum lane_id id = 0; id < LANES; id++)
		lanes->lane[id].access.inject = 0;
	report_add("| %s |", size->name);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		report_ratio(ratio[shown[i]]);
	report_add("\n");
	report_target(1.02, ratio[LANE_NATIVE], "injected write of %s, %d in flight, native / raw",
		      size->name, WORK_DEPTH);
	report_target(1.05, ratio[LANE_DEFAULT],
		      "injected write of %s, %d in flight, default / raw", size->name, WORK_DEPTH);
}

static void add_row(struct lanes *lanes, int write, const struct size *size, unsigned depth)
{
	static const enum lane_id shown[] = { LANE_NATIVE, LANE_DEFAULT, LANE_UNREGISTERED,
					      LANE_OTHER, LANE_AGAIN };
	const char *name = write ? "write" : "read";
	double ratio[LANES];

	set_access(lanes, write, size, depth);
	lanes_run(lanes, lane_access, size->rounds, ratio);
	report_add("| %s | %s | %u |", name, size->name, depth);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		report_ratio(ratio[shown[i]]);
	report_add("\n");
	if (depth == 1)
		report_target(write ? size->write : size->read, ratio[LANE_NATIVE],
			      "%s of %s, one at a time, native / raw", name, size->name);
	if (depth == 1 && size->bytes == 8)
		report_target(FEW_LIMIT(write), ratio[LANE_UNREGISTERED] / ratio[LANE_NATIVE],
			      "%s of %s, one at a time, unregistered / native", name, size->name);
}

/* --- completions ------------------------------------------------------------------------ */

static double completion(const struct lane *lane, int batch)
{
	double ns[9];

	for (int round = -1; round < 9; round++) {
		double one = NAN;

		if (lane->raw)
			one = raw_completions(lane->raw, &lane->access, batch);
		else if (lane->fab)
			one = fab_completions(lane->fab, &lane->access, (size_t)batch);
		ns[round < 0 ? 0 : round] = one;
	}
	return bench_middle(ns, 9);
}

static void add_completions(struct lanes *lanes, int batch)
{
	static const enum lane_id shown[] = { LANE_RAW, LANE_NATIVE, LANE_DEFAULT, LANE_OTHER };
	double ns[LANES];

	report_add("| %d |", batch);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		ns[shown[i]] = completion(&lanes->lane[shown[i]], batch);
		report_add(isnan(ns[shown[i]]) ? " - |" : " %.0f |", ns[shown[i]]);
	}
	report_add("\n");
	/* Without libfabric there is nothing to compare with. */
	if (!isnan(ns[LANE_OTHER]))
		report_target(1.0, ns[LANE_NATIVE] / ns[LANE_OTHER],
			      "a completion, read %d at a time, native / libfabric", batch);
}

void part_completions(struct lanes *lanes)
{
	set_access(lanes, 1, &few[0], 1);
	report_add(
		"\n## Completions\n\nInstructions to read a completion, of %d writes of 8 B that are done when "
		"the first one is read:\n\n"
		"| read at a time | raw | native | default | libfabric |\n"
		"| ---: | ---: | ---: | ---: | ---: |\n",
		WORK_COMPLETIONS);
	add_completions(lanes, 1);
	add_completions(lanes, WORK_COMPLETIONS);
}

void part_access(struct lanes *lanes)
{
	report_add("\n## Reads and writes\n\n"
		   "A connected queue pair and its completion queue, polled, against an\n"
		   "`FI_EP_RDM` endpoint and `fi_cq_read`. The connection is up, and the key "
		   "is known.\n*unregistered*: *default*, and no descriptor of the local "
		   "buffer. *raw* writes up to\n%d bytes with `IBV_SEND_INLINE`, as libmrfab does."
		   "\n\n"
		   "| | length | in flight | native / raw | default / raw | "
		   "unregistered / raw | libfabric / raw | raw again / raw |\n"
		   "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
		   RAW_INLINE);
	for (int write = 0; write < 2; write++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			add_row(lanes, write, &sizes[i], 1);
			add_row(lanes, write, &sizes[i], WORK_DEPTH);
		}
	}
	report_add(
		"\n`fi_inject_write`, %d in flight, the last of which is a write that tells when all "
		"are\ndone, against *raw* writes:\n\n"
		"| length | native / raw | default / raw | libfabric / raw | raw again / raw |\n"
		"| --- | ---: | ---: | ---: | ---: |\n",
		WORK_DEPTH);
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++)
		add_inject_row(lanes, &few[i]);
	/* What comes next does not write so. */
	set_access(lanes, 0, &few[0], 1);
}

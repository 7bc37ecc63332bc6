/* SPDX-License-Identifier: BSD-2-Clause */
#include "parts.h"

struct size {
	size_t bytes;
	unsigned times; /* a round */
	int rounds;
	const char *name;
};

static const struct size sizes[] = {
	{ 8, 96, 15, "8 B" },	    { 256, 96, 15, "256 B" },	 { 4096, 96, 15, "4 KiB" },
	{ 65536, 32, 9, "64 KiB" }, { 1048576, 16, 5, "1 MiB" },
};

static const struct size few[] = {
	{ 8, 96, 15, "8 B" },
	{ 64, 96, 15, "64 B" },
	{ 256, 96, 15, "256 B" },
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
	report_target(1.03, ratio[LANE_NATIVE], "injected write of %s, %d in flight, native / raw",
		      size->name, WORK_DEPTH);
}

static void add_row(struct lanes *lanes, int write, const struct size *size, unsigned depth)
{
	static const enum lane_id shown[] = { LANE_NATIVE, LANE_DEFAULT, LANE_UNREGISTERED,
					      LANE_OTHER,  LANE_INLINE,	 LANE_AGAIN };
	const char *name = write ? "write" : "read";
	double ratio[LANES];

	set_access(lanes, write, size, depth);
	lanes->lane[LANE_INLINE].raw = write && size->bytes <= RAW_INLINE ? &lanes->raw : NULL;
	lanes_run(lanes, lane_access, size->rounds, ratio);
	report_add("| %s | %s | %u |", name, size->name, depth);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		report_ratio(ratio[shown[i]]);
	report_add("\n");
	if (depth == 1)
		report_target(1.05, ratio[LANE_NATIVE], "%s of %s, one at a time, native / raw",
			      name, size->name);
	if (depth == 1 && size->bytes == 8)
		report_target(FEW_LIMIT(write), ratio[LANE_UNREGISTERED] / ratio[LANE_NATIVE],
			      "%s of %s, one at a time, unregistered / native", name, size->name);
}

void part_access(struct lanes *lanes)
{
	report_add("\n## Reads and writes\n\n"
		   "A connected queue pair and its completion queue, polled, against an\n"
		   "`FI_EP_RDM` endpoint and `fi_cq_read`. The connection is up, and the key "
		   "is known.\n*unregistered*: *default*, and no descriptor of the local "
		   "buffer. *raw inline*: with\n`IBV_SEND_INLINE`, which libmrfab uses for "
		   "small writes and *raw* does not.\n\n"
		   "| | length | in flight | native / raw | default / raw | "
		   "unregistered / raw | libfabric / raw | raw inline / raw | "
		   "raw again / raw |\n"
		   "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
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
}

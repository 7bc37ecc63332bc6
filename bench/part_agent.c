/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations that the device does not have. What the target's process does is part of
 * them: both processes share one processor. libmrfab has a thread there, which is woken, and
 * runs when the initiator has nothing to do but wait, as it does where each has a processor; of
 * libfabric somebody has to look all the time, and so does the target, for as long as it is
 * told to.
 */
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <sched.h>
#include "parts.h"

enum { OURS, OTHER, WAYS };

/* A library's half in this process. 0: there is none. */
static int open_way(struct lanes *lanes, int way)
{
	const struct fab_lib *lib = way == OURS ? &fab_ours : &lanes->other;

	if (way == OTHER && !lanes->lane[LANE_OTHER].fab)
		return 0;
	return !fab_open(&lanes->agent_fab[way], lib, FAB_NATIVE, FI_ATOMIC, lanes->buf,
			 BENCH_MAX_LEN);
}

/* --- the target -------------------------------------------------------------------- */

static void look_until_told(struct lanes *lanes)
{
	struct pollfd told = { .fd = lanes->socket, .events = POLLIN };

	while (!poll(&told, 1, 0)) {
		fab_progress(&lanes->agent_fab[OTHER]);
		sched_yield();
	}
}

void agent_serve(struct lanes *lanes)
{
	char go, there;

	lanes_hear(lanes, &go, sizeof(go));
	if (!go)
		return;
	for (int way = 0; way < WAYS; way++) {
		there = (char)open_way(lanes, way);
		lanes_tell(lanes, &there, sizeof(there));
		if (there)
			lanes_serve_fab(lanes, &lanes->agent_fab[way]);
	}
	for (lanes_hear(lanes, &go, sizeof(go)); go; lanes_hear(lanes, &go, sizeof(go))) {
		look_until_told(lanes);
		lanes_hear(lanes, &go, sizeof(go));
	}
}

/* --- the initiator ----------------------------------------------------------------- */

struct way {
	struct lanes *lanes;
	struct lane lane;
	int there;
	int tells; /* the target is to look meanwhile */
};

static void operate(void *arg)
{
	struct way *way = arg;

	if (!way->there)
		return;
	if (way->tells)
		lanes_tell(way->lanes, "y", 1);
	fab_access(way->lane.fab, &way->lane.access);
	if (way->tells)
		lanes_tell(way->lanes, "n", 1);
}

static void connect_way(struct lanes *lanes, struct way *way, int which)
{
	char there;

	lanes_hear(lanes, &there, sizeof(there));
	*way = (struct way){ .lanes = lanes, .tells = which == OTHER };
	if (!there)
		return;
	way->there = open_way(lanes, which);
	bench_must("opening both ends", !way->there);
	way->lane.fab = &lanes->agent_fab[which];
	lanes_connect_fab(lanes, way->lane.fab, &way->lane.access);
}

#define TIMES 96u
#define ROUNDS 15

static void add_row(struct way ways[WAYS], const char *what, enum fi_datatype datatype,
		    enum fi_op op, unsigned depth)
{
	struct bench_series series[WAYS];
	double us[WAYS];

	for (int i = 0; i < WAYS; i++) {
		struct work_access *access = &ways[i].lane.access;

		access->datatype = (int)datatype;
		access->op = (int)op;
		access->depth = depth;
		access->times = TIMES;
		access->yield = 1;
		series[i] = (struct bench_series){ .work = operate, .arg = &ways[i] };
	}
	bench_rounds(series, WAYS, ROUNDS);
	for (int i = 0; i < WAYS; i++)
		us[i] = bench_middle(series[i].ns, ROUNDS) / TIMES / 1000;
	report_add("| %s | %u | %.1f |", what, depth, us[OURS]);
	if (!ways[OTHER].there) {
		report_add(" - | - |\n");
		return;
	}
	report_add(" %.1f | %.3f |\n", us[OTHER], us[OURS] / us[OTHER]);
	report_target(depth > 1 ? 1.00 : 1.30, us[OURS] / us[OTHER],
		      "%s, %u in flight, native / libfabric", what, depth);
}

void part_agent(struct lanes *lanes)
{
	static struct way ways[WAYS];

	lanes_tell(lanes, "y", 1);
	for (int i = 0; i < WAYS; i++)
		connect_way(lanes, &ways[i], i);
	report_add("\n## Atomic operations that the device does not have\n\n"
		   "`fi_atomic` on 8 bytes, in thousands of instructions of both processes. "
		   "libfabric's target\n"
		   "(verbs;ofi_rxm) polls for the operations all the time; libmrfab's target "
		   "sleeps. No other peer\n"
		   "changes the word: an operation without competition is one swap by the device, "
		   "and each change by\n"
		   "another peer in between costs one more message.\n\n"
		   "| | in flight | native | libfabric | native / libfabric |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	for (unsigned depth = 1; depth <= WORK_DEPTH; depth *= WORK_DEPTH) {
		add_row(ways, "min of 64-bit integers", FI_INT64, FI_MIN, depth);
		add_row(ways, "sum of doubles", FI_DOUBLE, FI_SUM, depth);
	}
	lanes_tell(lanes, "", 1);
}

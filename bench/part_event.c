/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that the target counts. Both processes share one processor, so what the target does
 * about a write is part of it: it is woken by each.
 */
#include <pthread.h>
#include <unistd.h>
#include "parts.h"

enum { RAW, OURS, AGAIN, WAYS, ASLEEP = WAYS, ALL_WAYS };

#define ASLEEP_LIMIT 1.25

/* --- the target -------------------------------------------------------------------- */

static void *wait_for_count(void *arg)
{
	struct fab *fab = arg;

	for (;;)
		bench_must("fi_cntr_wait",
			   fi_cntr_wait(fab->cntr, fi_cntr_read(fab->cntr) + 1, -1));
	return NULL;
}

static void *wait_for_data(void *arg)
{
	struct fab *fab = arg;
	struct fi_cq_entry entry;

	for (;;)
		bench_must("fi_cq_sread", fi_cq_sread(fab->cq, &entry, 1, NULL, -1) != 1);
	return NULL;
}

/* From when the initiator says so; the thread goes on until the process ends. */
static void sleep_in(struct lanes *lanes, struct fab *fab, void *(*loop)(void *fab))
{
	pthread_t thread;
	char go;

	lanes_hear(lanes, &go, sizeof(go));
	bench_must("pthread_create", pthread_create(&thread, NULL, loop, fab));
	bench_yield();
	lanes_tell(lanes, &go, sizeof(go));
}

static void open_asleep(struct lanes *lanes)
{
	lanes->asleep_fab.waits = 1;
	bench_must("fab_open", fab_open(&lanes->asleep_fab, &fab_ours, FAB_NATIVE, 0, lanes->buf,
					BENCH_MAX_LEN));
}

void event_serve(struct lanes *lanes)
{
	struct raw *raw = &lanes->event_raw;
	uint64_t wanted[2], counted;
	pthread_t thread;
	char go;

	lanes_hear(lanes, &go, sizeof(go));
	if (!go)
		return;
	/* Else its threads would run when the initiator has used up its time, not before. */
	bench_eager();
	raw_open(raw);
	raw->takes = 1;
	lanes_serve_raw(lanes, raw);
	bench_must("pthread_create", pthread_create(&thread, NULL, raw_take, raw));
	bench_must("fab_open", fab_open(&lanes->event_fab, &fab_ours, FAB_NATIVE, FI_RMA_EVENT,
					lanes->buf, BENCH_MAX_LEN));
	lanes_serve_fab(lanes, &lanes->event_fab);
	open_asleep(lanes);
	lanes_serve_fab(lanes, &lanes->asleep_fab);
	bench_yield();
	sleep_in(lanes, &lanes->event_fab, wait_for_count);
	sleep_in(lanes, &lanes->asleep_fab, wait_for_data);
	/* What was measured is what was meant. */
	lanes_hear(lanes, wanted, sizeof(wanted));
	counted = fi_cntr_read(lanes->event_fab.cntr);
	if (raw->taken != wanted[RAW] || counted != wanted[OURS]) {
		fprintf(stderr, "bench: %lu and %lu writes were counted, not %lu and %lu\n",
			(unsigned long)raw->taken, (unsigned long)counted,
			(unsigned long)wanted[RAW], (unsigned long)wanted[OURS]);
		_exit(2);
	}
}

/* --- the initiator ----------------------------------------------------------------- */

static void open_ways(struct lanes *lanes, struct lane ways[ALL_WAYS])
{
	raw_open(&lanes->event_raw);
	lanes_connect_raw(lanes, &lanes->event_raw, &ways[RAW].access.remote);
	ways[RAW].access.use_imm = 1;
	ways[AGAIN] = ways[RAW];
	ways[RAW].raw = ways[AGAIN].raw = &lanes->event_raw;
	bench_must("fab_open", fab_open(&lanes->event_fab, &fab_ours, FAB_NATIVE, FI_RMA_EVENT,
					lanes->buf, BENCH_MAX_LEN));
	lanes_connect_fab(lanes, &lanes->event_fab, &ways[OURS].access);
	ways[OURS].fab = &lanes->event_fab;
	open_asleep(lanes);
	lanes_connect_fab(lanes, &lanes->asleep_fab, &ways[ASLEEP].access);
	ways[ASLEEP].access.use_imm = 1;
	ways[ASLEEP].fab = &lanes->asleep_fab;
}

struct size {
	size_t bytes;
	unsigned times; /* a round */
	int rounds;
	const char *name;
};

static const struct size sizes[] = {
	{ 8, 192, 15, "8 B" },
	{ 4096, 192, 15, "4 KiB" },
	{ 65536, 32, 9, "64 KiB" },
};

/* Ours and raw again, compared with raw. */
struct ratios {
	double ours, again;
};

static struct ratios measure(struct lanes *lanes, struct lane ways[WAYS], const struct size *size,
			     unsigned depth)
{
	struct bench_series series[WAYS];
	double raw;

	for (int i = 0; i < WAYS; i++) {
		struct work_access *access = &ways[i].access;

		access->write = 1;
		access->buf = lanes->buf;
		access->len = size->bytes;
		access->depth = depth;
		access->times = size->times;
		series[i] = (struct bench_series){ .work = lane_access, .arg = &ways[i] };
	}
	bench_rounds(series, WAYS, size->rounds);
	raw = bench_middle(series[RAW].ns, size->rounds);
	return (struct ratios){ bench_middle(series[OURS].ns, size->rounds) / raw,
				bench_middle(series[AGAIN].ns, size->rounds) / raw };
}

static void add_ratios(const struct ratios *ratios)
{
	report_ratio(ratios->ours);
	report_ratio(ratios->again);
	report_add("\n");
}

static void add_row(struct lanes *lanes, struct lane ways[WAYS], const struct size *size,
		    unsigned depth)
{
	struct ratios ratios = measure(lanes, ways, size, depth);

	report_add("| %s | %u |", size->name, depth);
	add_ratios(&ratios);
	if (depth == 1)
		report_target(1.10, ratios.ours, "event write of %s, one at a time, native / raw",
			      size->name);
}

static void add_asleep(struct lanes *lanes, struct lane ways[WAYS], const char *where)
{
	struct ratios ratios;
	char go = 'y';

	lanes_tell(lanes, &go, sizeof(go));
	lanes_hear(lanes, &go, sizeof(go));
	ratios = measure(lanes, ways, &sizes[0], 1);
	report_add("| %s |", where);
	add_ratios(&ratios);
	report_target(ASLEEP_LIMIT, ratios.ours,
		      "event write of 8 B, target asleep in %s, native / raw", where);
}

/* The application itself sleeps; raw's does all the time. */
static void add_sleepers(struct lanes *lanes, struct lane ways[ALL_WAYS])
{
	report_add("\nWith a thread of the target's application that sleeps until the write has "
		   "arrived, and sleeps again;\n"
		   "8 B, one at a time:\n\n"
		   "| asleep in | native / raw | raw again / raw |\n"
		   "| --- | ---: | ---: |\n");
	add_asleep(lanes, ways, "fi_cntr_wait");
	ways[OURS] = ways[ASLEEP];
	add_asleep(lanes, ways, "fi_cq_sread");
}

void part_event(struct lanes *lanes)
{
	static struct lane ways[ALL_WAYS];
	uint64_t done[2] = { 0, 0 };

	lanes_tell(lanes, "y", 1);
	open_ways(lanes, ways);
	report_add("\n## Event writes\n\n"
		   "Writes to a region with a counter (`fi_mr_bind` with `FI_REMOTE_WRITE`) "
		   "compared with\n"
		   "`IBV_WR_RDMA_WRITE_WITH_IMM` to a process that sleeps until one arrives, takes "
		   "it, counts\n"
		   "it and posts its RECV again. The work of the target is included.\n\n"
		   "| length | in flight | native / raw | raw again / raw |\n"
		   "| --- | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		add_row(lanes, ways, &sizes[i], 1);
		add_row(lanes, ways, &sizes[i], WORK_DEPTH);
		done[RAW] += 4ul * sizes[i].times * (unsigned)(sizes[i].rounds + 1);
		done[OURS] += 2ul * sizes[i].times * (unsigned)(sizes[i].rounds + 1);
	}
	add_sleepers(lanes, ways);
	done[RAW] += 4ul * sizes[0].times * (unsigned)(sizes[0].rounds + 1);
	done[OURS] += sizes[0].times * (unsigned)(sizes[0].rounds + 1);
	lanes_tell(lanes, done, sizeof(done));
}

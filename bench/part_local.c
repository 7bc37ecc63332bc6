/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local buffers of one endpoint whose domain does not ask for registered ones, but can use
 * them: with a descriptor, and without. The peer is the one of LANE_NATIVE. And what a process with
 * many mappings pays, which change.
 */
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include "parts.h"

#define MODE (FAB_NATIVE & ~FI_MR_LOCAL)

enum { DESC, NONE, AGAIN, WAYS };

struct size {
	size_t bytes;
	unsigned times; /* a round */
	int rounds;
	const char *name;
};

static const struct size sizes[] = {
	{ 65536, 32, 9, "64 KiB" },
	{ 1048576, 16, 5, "1 MiB" },
};

static void set_ways(struct lanes *lanes, struct fab *fab, struct lane ways[WAYS])
{
	for (int i = 0; i < WAYS; i++) {
		ways[i].fab = fab;
		ways[i].access = lanes->lane[LANE_NATIVE].access;
		ways[i].access.write = 1;
		ways[i].access.use_desc = i != NONE;
		ways[i].access.yield = 1;
		ways[i].access.buf = lanes->buf;
		ways[i].access.len = sizes[0].bytes;
		ways[i].access.depth = 1;
		ways[i].access.times = 1;
	}
	/* Connects. */
	lane_access(&ways[DESC]);
}

static void add_row(struct lane ways[WAYS], const struct size *size, unsigned depth)
{
	struct bench_series series[WAYS];
	double desc, ratio;

	for (int i = 0; i < WAYS; i++) {
		struct work_access *access = &ways[i].access;

		access->yield = 0;
		access->len = size->bytes;
		access->depth = depth;
		access->times = size->times;
		series[i] = (struct bench_series){ .work = lane_access, .arg = &ways[i] };
	}
	bench_rounds(series, WAYS, size->rounds);
	desc = bench_middle(series[DESC].ns, size->rounds);
	ratio = bench_middle(series[NONE].ns, size->rounds) / desc;
	report_add("| write | %s | %u |", size->name, depth);
	report_ratio(ratio);
	report_ratio(bench_middle(series[AGAIN].ns, size->rounds) / desc);
	report_add("\n");
	report_target(1.01, ratio, "write of %s, %u in flight, unregistered / with a descriptor",
		      size->name, depth);
}

/* --- many mappings, which change -------------------------------------------------------- */

#define PAGE 4096u
#define MAPPINGS 30000
#define CHANGES 100
#define OPERATIONS 20 /* after each change */

/* No two of them can be one: they differ in what is allowed. */
static void *map_many(void)
{
	uint8_t *all =
		mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bench_must_errno("mmap", all != MAP_FAILED);
	for (size_t i = 0; i < MAPPINGS; i += 2)
		bench_must_errno("mprotect", !mprotect(all + i * PAGE, PAGE, PROT_NONE));
	/* The kernel frees later what that has replaced. */
	sleep(1);
	return all;
}

static void change_mappings(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bench_must_errno("mmap", page != MAP_FAILED);
	munmap(page, PAGE);
}

/* us, of one operation from call to completion. */
static double longest(struct lane *lane, bool change)
{
	uint64_t most = 0, start, ns;

	for (unsigned i = 0; i < CHANGES * OPERATIONS; i++) {
		if (change && i % OPERATIONS == 0)
			change_mappings();
		start = bench_now();
		lane_access(lane);
		ns = bench_now() - start;
		most = ns > most ? ns : most;
	}
	return (double)most / 1e3;
}

struct longest {
	double still, few, many;
};

static struct longest add_longest(struct lanes *lanes, enum lane_id id, bool write,
				  const char *name)
{
	struct lane lane = lanes->lane[id];
	struct longest us;
	void *all;

	lane.access.write = write;
	lane.access.inject = write;
	lane.access.buf = lanes->buf;
	lane.access.len = 8;
	lane.access.depth = 1;
	lane.access.times = write ? 2 : 1;
	us.still = longest(&lane, false);
	us.few = longest(&lane, true);
	all = map_many();
	us.many = longest(&lane, true);
	munmap(all, (size_t)MAPPINGS * PAGE);
	report_add("| %s | %.0f | %.0f | %.0f |\n", name, us.still, us.few, us.many);
	return us;
}

/* With the many mappings, whether they are looked up or not. */
static void compare(const struct longest *ours, const struct longest *raw, const char *name)
{
	report_target(50, ours->many - raw->many,
		      "us: the longest %s among %u mappings that change, beyond raw's", name,
		      MAPPINGS);
}

static void add_changes(struct lanes *lanes)
{
	struct longest raw, ours;

	report_add(
		"\n## Mappings that change\n\n"
		"The longest of %u operations on 8 bytes, from call to completion, in us. Before "
		"every %uth one\na page is mapped and unmapped.\n\n"
		"| | nothing changes | with changes | and %u more mappings |\n"
		"| --- | ---: | ---: | ---: |\n",
		CHANGES * OPERATIONS, OPERATIONS, MAPPINGS);
	raw = add_longest(lanes, LANE_RAW, true, "two writes, raw");
	ours = add_longest(lanes, LANE_NATIVE, true, "injected write and a write, native");
	compare(&ours, &raw, "injected write and a write, native");
	raw = add_longest(lanes, LANE_RAW, false, "read, raw");
	ours = add_longest(lanes, LANE_UNREGISTERED, false, "read, unregistered");
	compare(&ours, &raw, "read, unregistered");
}

void part_local(struct lanes *lanes)
{
	static struct lane ways[WAYS];
	static struct fab fab;

	lanes_join(lanes, &fab, MODE, FI_ATOMIC);
	set_ways(lanes, &fab, ways);
	report_add("\n## Writes from one unregistered buffer\n\n"
		   "The modes of *native* without `FI_MR_LOCAL`, so that a descriptor is optional "
		   "but used if given:\n"
		   "the same buffer, again and again, without a descriptor compared with one.\n\n"
		   "| | length | in flight | unregistered / descriptor | descriptor again / "
		   "descriptor |\n"
		   "| --- | --- | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		add_row(ways, &sizes[i], 1);
		add_row(ways, &sizes[i], WORK_DEPTH);
	}
	add_changes(lanes);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same work with ever more peers connected: the initiator's endpoint has connections to
 * them all, and the domain of the target has as many from it. What is measured concerns one
 * of them.
 */
#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include "parts.h"

#define USUAL 100
#define ROUNDS 5
#define TARGET 1.10

/* BENCH_PEERS in the environment makes them more; each takes some 300 KiB and 50 ms. */
static unsigned most(void)
{
	const char *text = getenv("BENCH_PEERS");

	return text ? (unsigned)atoi(text) : USUAL;
}

/* --- the target -------------------------------------------------------------------- */

/* One more endpoint in the domain; never closed. */
static void add_endpoint(const struct fab *fab, char name[FAB_NAME_LEN])
{
	struct fab more = *fab;

	bench_must("fi_endpoint", fi_endpoint(fab->domain, fab->info, &more.ep, NULL));
	bench_must("fi_ep_bind", fi_ep_bind(more.ep, &fab->av->fid, 0));
	bench_must("fi_ep_bind", fi_ep_bind(more.ep, &fab->cq->fid, FI_TRANSMIT | FI_RECV));
	bench_must("fi_enable", fi_enable(more.ep));
	fab_name(&more, name);
}

void peers_serve(struct lanes *lanes)
{
	struct fab *fab = &lanes->peers_fab;
	char name[FAB_NAME_LEN];
	char go;

	lanes_hear(lanes, &go, sizeof(go));
	if (!go)
		return;
	bench_must("fab_open",
		   fab_open(fab, &fab_ours, FAB_NATIVE, FI_ATOMIC, lanes->buf, BENCH_MAX_LEN));
	lanes_serve_fab(lanes, fab);
	for (lanes_hear(lanes, &go, sizeof(go)); go; lanes_hear(lanes, &go, sizeof(go))) {
		add_endpoint(fab, name);
		lanes_tell(lanes, name, sizeof(name));
	}
}

/* --- the initiator ----------------------------------------------------------------- */

enum { WRITE, REGISTER, REQUEST, WORKS };

struct work {
	struct fab *fab;
	struct work_access access;
	struct work_register reg;
};

static void do_access(void *arg)
{
	const struct work *work = arg;

	fab_access(work->fab, &work->access);
}

static void do_register(void *arg)
{
	const struct work *work = arg;

	fab_register(work->fab, &work->reg);
}

static void set_works(struct lanes *lanes, struct work works[WORKS])
{
	struct fab *fab = &lanes->peers_fab;
	struct work_access access = { 0 };

	lanes_connect_fab(lanes, fab, &access);
	access.use_desc = 1;
	access.depth = 1;
	access.yield = 1;
	for (int i = 0; i < WORKS; i++)
		works[i] = (struct work){ .fab = fab, .access = access };
	works[WRITE].access.write = 1;
	works[WRITE].access.len = 8;
	works[WRITE].access.times = 500;
	works[REGISTER].reg =
		(struct work_register){ .buf = lanes->buf, .len = 4096, .times = 5000 };
	/* 16 bytes: always done by the target's agent. */
	works[REQUEST].access.datatype = FI_DOUBLE_COMPLEX;
	works[REQUEST].access.op = FI_SUM;
	works[REQUEST].access.times = 100;
}

/* Connects one more, which is not accessed again. */
static void connect_one(struct lanes *lanes, const struct work *work)
{
	struct fab *fab = work->fab;
	struct work_access first = work->access;
	fi_addr_t measured = fab->peer;
	char name[FAB_NAME_LEN];

	lanes_tell(lanes, "y", 1);
	lanes_hear(lanes, name, sizeof(name));
	fab_insert(fab, name);
	first.times = 1;
	fab_access(fab, &first);
	fab->peer = measured;
}

static void measure(struct work works[WORKS], double us[WORKS])
{
	struct bench_series series[WORKS];

	for (int i = 0; i < WORKS; i++)
		series[i] = (struct bench_series){ .work = i == REGISTER ? do_register : do_access,
						   .arg = &works[i] };
	bench_rounds(series, WORKS, ROUNDS);
	for (int i = 0; i < WORKS; i++)
		us[i] = bench_middle(series[i].ns, ROUNDS) / 1000 /
			(i == REGISTER ? works[i].reg.times : works[i].access.times);
}

static void add_row(unsigned peers, const double us[WORKS], const double alone[WORKS])
{
	static const char *const what[WORKS] = { "write of 8 B", "register and close 4 KiB",
						 "request that the target's process answers" };

	report_add("| %u |", peers);
	for (int i = 0; i < WORKS; i++)
		report_add(" %.1f | %.3f |", us[i], us[i] / alone[i]);
	report_add("\n");
	if (peers < 100)
		return;
	for (int i = 0; i < WORKS; i++)
		report_target(TARGET, us[i] / alone[i], "%s, with %u peers connected / with 1",
			      what[i], peers);
}

void part_peers(struct lanes *lanes)
{
	static struct work works[WORKS];
	double us[WORKS], alone[WORKS];
	unsigned n = 1;

	lanes_tell(lanes, "y", 1);
	bench_must("fab_open", fab_open(&lanes->peers_fab, &fab_ours, FAB_NATIVE, FI_ATOMIC,
					lanes->buf, BENCH_MAX_LEN));
	set_works(lanes, works);
	report_add("\n## Many peers connected\n\n"
		   "In thousands of instructions of both processes, *native*, one at a time, and "
		   "as a ratio to one peer.\n"
		   "The initiator's endpoint is connected to the given number of endpoints of one "
		   "domain of the target.\n"
		   "The request is a sum of 16-byte elements, which the target's agent carries out "
		   "and replies to.\n\n"
		   "| peers | write of 8 B | | register and close 4 KiB | | request | |\n"
		   "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
	measure(works, alone);
	add_row(1, alone, alone);
	for (unsigned peers = 10; peers <= most(); peers *= 10) {
		for (; n < peers; n++)
			connect_one(lanes, &works[WRITE]);
		measure(works, us);
		add_row(peers, us, alone);
	}
	lanes_tell(lanes, "", 1);
}

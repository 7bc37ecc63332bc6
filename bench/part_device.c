/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers from and to memory of a device, which pass through memory of the host, against doing
 * one thing after the other: the runtime's copy of all of it, and the same transfer from or to
 * memory of the host. The runtime is a stand-in (tests/runtime). The device is this process's, and
 * the peer the one of LANE_NATIVE; or it is the target's; or both have one.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include "parts.h"
#include "runtime/rig.h"

#define MODE (FAB_NATIVE | FI_MR_HMEM)
#define RIGHTS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROUNDS 5
#define FEW_BYTES 4096u	   /* less does not keep a device busy */
#define NO_MORE UINT32_MAX /* no speed: the target has nothing more to do */

enum { COPY, HOST, STAGED, AGAIN, WAYS };

/* Of each of the two processes. */
static struct device {
	const struct rig *rig;
	void *memory;
	struct fab host, staged; /* the same endpoint; mr is of the one memory or the other */
} d;

/* Whose device takes part in what is measured. */
struct side {
	struct lanes *lanes;
	const char *whose;
	int far; /* the target's does */
	struct lane lane[WAYS];
};

static int is_staged(int way)
{
	return way == STAGED || way == AGAIN;
}

/* --- both processes ---------------------------------------------------------------- */

static struct fid_mr *register_memory(struct fab *fab)
{
	const struct iovec iov = { d.memory, BENCH_MAX_LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RIGHTS,
				   .requested_key = fab->next_key++,
				   .iface = d.rig->iface };
	struct fid_mr *mr;

	bench_must("fi_mr_regattr", fi_mr_regattr(fab->domain, &attr, 0, &mr));
	return mr;
}

static void make_memory(void)
{
	struct rig_control control;

	d.rig = rig_load(0, &control);
	d.memory = d.rig->make(RT_DEVICE, 0, BENCH_MAX_LEN);
}

static void add_memory(void)
{
	d.staged = d.host;
	d.staged.mr = register_memory(&d.host);
}

/* What a copy takes beside what the processor does. */
static void set_speed(uint32_t us_per_mib)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", us_per_mib);
	bench_must_errno("setenv", !setenv("MRFAB_RUNTIME_US_PER_MIB", text, 1));
}

/* Threads that copy do not sleep longer than a copy takes. 0: as it was. */
static void set_slack(unsigned long ns)
{
	bench_must_errno("prctl", !prctl(PR_SET_TIMERSLACK, ns));
}

/* --- the target -------------------------------------------------------------------- */

/* It says when it has done what it was told. */
static void take_speeds(struct lanes *lanes)
{
	uint32_t us;

	for (lanes_hear(lanes, &us, sizeof(us)); us != NO_MORE;
	     lanes_hear(lanes, &us, sizeof(us))) {
		set_speed(us);
		lanes_tell(lanes, "", 1);
	}
}

void device_serve(struct lanes *lanes)
{
	struct work_remote remote;
	char go;

	lanes_hear(lanes, &go, sizeof(go));
	if (!go)
		return;
	set_slack(1);
	bench_eager();
	make_memory();
	bench_must("fab_open",
		   fab_open(&d.host, &fab_ours, MODE, FI_HMEM, lanes->buf, BENCH_MAX_LEN));
	add_memory();
	lanes_serve_fab(lanes, &d.host);
	fab_remote(&d.staged, d.memory, &remote);
	lanes_tell(lanes, &remote, sizeof(remote));
	bench_yield();
	take_speeds(lanes);
	set_slack(0);
}

/* --- the initiator ----------------------------------------------------------------- */

static void open_near(struct side *side)
{
	struct lanes *lanes = side->lanes;

	lanes_join(lanes, &d.host, MODE, FI_HMEM);
	add_memory();
	for (int i = 0; i < WAYS; i++) {
		side->lane[i].fab = is_staged(i) ? &d.staged : &d.host;
		side->lane[i].access.buf = is_staged(i) ? d.memory : lanes->buf;
		side->lane[i].access.remote = lanes->lane[LANE_NATIVE].access.remote;
	}
}

/* This process's endpoint for the target's device, and for its memory as well as host memory here. */
static struct fab from_far, from_both;
static struct work_access far_host;
static struct work_remote far_staged;

static void open_far(struct side *side)
{
	struct lanes *lanes = side->lanes;

	lanes_tell(lanes, "y", 1);
	bench_must("fab_open",
		   fab_open(&from_far, &fab_ours, MODE, FI_HMEM, lanes->buf, BENCH_MAX_LEN));
	lanes_connect_fab(lanes, &from_far, &far_host);
	lanes_hear(lanes, &far_staged, sizeof(far_staged));
	for (int i = 0; i < WAYS; i++) {
		side->lane[i].fab = &from_far;
		side->lane[i].access.buf = lanes->buf;
		side->lane[i].access.remote = is_staged(i) ? far_staged : far_host.remote;
	}
}

/* After open_far. */
static void open_both(struct side *side)
{
	from_both = from_far;
	from_both.mr = register_memory(&from_far);
	for (int i = 0; i < WAYS; i++) {
		side->lane[i].fab = is_staged(i) ? &from_both : &from_far;
		side->lane[i].access.buf = is_staged(i) ? d.memory : side->lanes->buf;
		side->lane[i].access.remote = is_staged(i) ? far_staged : far_host.remote;
	}
}

static void set_all_speeds(const struct side *side, uint32_t us_per_mib)
{
	char done;

	set_speed(us_per_mib);
	if (!side->far)
		return;
	lanes_tell(side->lanes, &us_per_mib, sizeof(us_per_mib));
	lanes_hear(side->lanes, &done, sizeof(done));
}

/* --- copies ------------------------------------------------------------------------ */

static atomic_int copied;

/*
 * What is written comes from a device of this process, and goes to one of the target. What such a
 * copy takes is the same in each process.
 */
static void *copy(void *arg)
{
	const struct side *side = arg;
	const struct work_access *access = &side->lane[COPY].access;

	for (unsigned i = 0; i < access->times; i++) {
		if (access->write == side->far)
			d.rig->put(d.memory, access->buf, access->len);
		else
			d.rig->get(access->buf, d.memory, access->len);
	}
	atomic_store(&copied, 1);
	return NULL;
}

/*
 * Meanwhile this thread has something to do, as it has while it polls: while nobody has, time is
 * not that of instructions.
 */
static void copy_beside(void *arg)
{
	pthread_t thread;

	atomic_store(&copied, 0);
	bench_eager();
	bench_must("pthread_create", pthread_create(&thread, NULL, copy, arg));
	bench_yield();
	while (!atomic_load(&copied))
		sched_yield();
	bench_must("pthread_join", pthread_join(thread, NULL));
}

/* --- rows -------------------------------------------------------------------------- */

struct row {
	size_t len;
	unsigned depth, times; /* in flight; a round */
	const char *name;
	/* Targets, of copies by the processor and by the device. 0: none. */
	double write[2], read[2];
};

static void set_row(struct side *side, const struct row *row, int write)
{
	for (int i = 0; i < WAYS; i++) {
		struct work_access *access = &side->lane[i].access;

		access->write = write;
		access->use_desc = 1;
		access->yield = 1;
		access->len = row->len;
		access->depth = row->depth;
		access->times = row->times;
	}
}

static void measure(struct side *side, double ns[WAYS])
{
	struct bench_series series[WAYS] = { { .work = copy_beside, .arg = side } };

	for (int i = HOST; i < WAYS; i++)
		series[i] = (struct bench_series){ .work = lane_access, .arg = &side->lane[i] };
	bench_rounds(series, WAYS, ROUNDS);
	for (int i = 0; i < WAYS; i++)
		ns[i] = bench_middle(series[i].ns, ROUNDS);
}

static void add_line(const struct side *side, const struct row *row, int write, int by_device,
		     const double ns[WAYS])
{
	double both = ns[COPY] + ns[HOST], limit = (write ? row->write : row->read)[by_device];
	double longer = ns[COPY] > ns[HOST] ? ns[COPY] : ns[HOST];
	const char *what = write ? "write" : "read", *who = by_device ? "device" : "processor";

	report_add("| %s | %s | %s | %u | %s |", what, side->whose, row->name, row->depth, who);
	report_ratio(ns[COPY] / ns[HOST]);
	report_ratio(ns[STAGED] / both);
	report_ratio(ns[AGAIN] / both);
	report_ratio(ns[STAGED] / longer);
	report_add("\n");
	if (row->depth > 1 && by_device)
		report_target(limit, ns[STAGED] / longer,
			      "%s of %s, %u in flight, the device is %s's, copied by the %s / the "
			      "longer of copy and host %s",
			      what, row->name, row->depth, side->whose, who, what);
	else if (limit > 0)
		report_target(limit, ns[STAGED] / both,
			      "%s of %s, the device is %s's, copied by the %s / copy + host %s",
			      what, row->name, side->whose, who, what);
}

/* A device that is as fast as the transfer: then most can be saved. */
static void add_lines(struct side *side, const struct row *row, int write)
{
	double ns[WAYS];

	set_row(side, row, write);
	measure(side, ns);
	add_line(side, row, write, 0, ns);
	if (row->len < FEW_BYTES)
		return;
	set_all_speeds(side, (uint32_t)(ns[HOST] / row->times / 1000 * (BENCH_MAX_LEN / row->len)));
	measure(side, ns);
	add_line(side, row, write, 1, ns);
	set_all_speeds(side, 0);
}

static const struct row near_rows[] = {
	{ BENCH_MAX_LEN, 1, 4, "1 MiB", { 1.10, 0.85 }, { 1.10, 0.85 } },
	{ BENCH_MAX_LEN, WORK_DEPTH, 32, "1 MiB", { 0, 1.3 }, { 0, 1.3 } },
	{ 64 << 10, WORK_DEPTH, 64, "64 KiB", { 0, 1.3 }, { 0, 1.3 } },
	{ 0 },
};

static const struct row far_rows[] = {
	{ BENCH_MAX_LEN, 1, 4, "1 MiB", { 1.15, 0 }, { 0 } },
	{ BENCH_MAX_LEN, WORK_DEPTH, 32, "1 MiB", { 0, 1.3 }, { 0, 1.3 } },
	{ 64 << 10, WORK_DEPTH, 64, "64 KiB", { 0, 1.3 }, { 0, 1.3 } },
	{ 8, 1, 96, "8 B", { 0 }, { 0 } },
	{ 8, WORK_DEPTH, 192, "8 B", { 0 }, { 0 } },
	{ 0 },
};

static const struct row both_rows[] = {
	{ BENCH_MAX_LEN, WORK_DEPTH, 32, "1 MiB", { 0, 1.6 }, { 0, 1.6 } },
	{ 64 << 10, WORK_DEPTH, 64, "64 KiB", { 0, 1.6 }, { 0, 1.6 } },
	{ 0 },
};

/*
 * The threads of the library run when they are woken, as they do where there are more processors.
 */
static void start_threads(struct side *side, void (*open)(struct side *side), const struct row *row)
{
	bench_eager();
	open(side);
	for (int write = 0; write < 2; write++) {
		set_row(side, row, write);
		lane_access(&side->lane[STAGED]);
	}
	bench_yield();
}

static void add_side(struct side *side, void (*open)(struct side *side), const struct row *rows)
{
	start_threads(side, open, rows);
	for (const struct row *row = rows; row->len; row++) {
		for (int write = 0; write < 2; write++)
			add_lines(side, row, write);
	}
}

void part_device(struct lanes *lanes)
{
	static struct side near = { .whose = "the initiator" },
			   far = { .whose = "the target", .far = 1 },
			   both = { .whose = "either side", .far = 1 };
	uint32_t no_more = NO_MORE;

	near.lanes = far.lanes = both.lanes = lanes;
	set_slack(1);
	make_memory();
	report_add("\n## Device memory\n\n"
		   "Transfers from or to memory that only the device's runtime (a stand-in) can "
		   "copy, compared with\n"
		   "*copy + host*: the runtime copies all of it, and the same transfer is made "
		   "from or to registered\n"
		   "host memory. The device is the initiator's or the target's, and the memory on "
		   "the other side is host\n"
		   "memory; or each side has a device. Either the processor makes the copies, or "
		   "the device does, in\n"
		   "which case the processor is free meanwhile; the device is as fast as the "
		   "transfer.\n\n"
		   "| | device | length | in flight | copies | copy / host | staged / (copy + "
		   "host) | "
		   "staged again / (copy + host) | staged / the longer |\n"
		   "| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |\n");
	add_side(&near, open_near, near_rows);
	add_side(&far, open_far, far_rows);
	add_side(&both, open_both, both_rows);
	lanes_tell(lanes, &no_more, sizeof(no_more));
	set_slack(0);
}

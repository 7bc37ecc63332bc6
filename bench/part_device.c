/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers from and to memory of a device, which pass through memory of the host, against doing
 * one thing after the other: the runtime's copy of all of it, and the same transfer from or to
 * memory of the host. The runtime is a stand-in (tests/runtime). The peer is the one of
 * LANE_NATIVE.
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
#define TIMES 4u
#define ROUNDS 5

enum { COPY, HOST, STAGED, AGAIN, WAYS };

static struct device {
	const struct rig *rig;
	void *memory;
	struct fab host, staged; /* the same endpoint; mr is of the one memory or the other */
	struct lane lane[WAYS];
} d;

static struct fid_mr *register_memory(void)
{
	const struct iovec iov = { d.memory, BENCH_MAX_LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_READ | FI_WRITE,
				   .requested_key = d.host.next_key++,
				   .iface = d.rig->iface };
	struct fid_mr *mr;

	bench_must("fi_mr_regattr", fi_mr_regattr(d.host.domain, &attr, 0, &mr));
	return mr;
}

static void open_device(struct lanes *lanes)
{
	struct rig_control control;

	d.rig = rig_load(0, &control);
	d.memory = d.rig->make(RT_DEVICE, 0, BENCH_MAX_LEN);
	lanes_join(lanes, &d.host, MODE, FI_HMEM);
	d.staged = d.host;
	d.staged.mr = register_memory();
}

static void set_ways(struct lanes *lanes, int write)
{
	for (int i = 0; i < WAYS; i++) {
		bool staged = i == STAGED || i == AGAIN;

		d.lane[i].fab = staged ? &d.staged : &d.host;
		d.lane[i].access = lanes->lane[LANE_NATIVE].access;
		d.lane[i].access.write = write;
		d.lane[i].access.use_desc = 1;
		d.lane[i].access.yield = 1;
		d.lane[i].access.buf = staged ? d.memory : lanes->buf;
		d.lane[i].access.len = BENCH_MAX_LEN;
		d.lane[i].access.depth = 1;
		d.lane[i].access.times = TIMES;
	}
}

static atomic_int copied;

/* What is written comes from the device, what is read goes there. */
static void *copy(void *arg)
{
	const struct work_access *access = &((struct lane *)arg)->access;

	for (unsigned i = 0; i < access->times; i++) {
		if (access->write)
			d.rig->get(access->buf, d.memory, access->len);
		else
			d.rig->put(d.memory, access->buf, access->len);
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

static void measure(double ns[WAYS])
{
	struct bench_series series[WAYS];

	for (int i = 0; i < WAYS; i++)
		series[i] = (struct bench_series){ .work = i == COPY ? copy_beside : lane_access,
						   .arg = &d.lane[i] };
	bench_rounds(series, WAYS, ROUNDS);
	for (int i = 0; i < WAYS; i++)
		ns[i] = bench_middle(series[i].ns, ROUNDS);
}

static void add_row(const char *name, const char *who, double limit, const double ns[WAYS])
{
	double both = ns[COPY] + ns[HOST];

	report_add("| %s | %s |", name, who);
	report_ratio(ns[COPY] / ns[HOST]);
	report_ratio(ns[STAGED] / both);
	report_ratio(ns[AGAIN] / both);
	report_add("\n");
	report_target(limit, ns[STAGED] / both,
		      "%s of 1 MiB of a device, copied by the %s / copy + %s of the host", name,
		      who, name);
}

/* The threads of the library run when they are woken, as they do where there are more processors. */
static void start_threads(struct lanes *lanes)
{
	bench_eager();
	open_device(lanes);
	set_ways(lanes, 1);
	lane_access(&d.lane[STAGED]);
	bench_yield();
}

/* A device that is as fast as the transfer: then most can be saved. */
static void add_rows(struct lanes *lanes, int write)
{
	const char *name = write ? "write" : "read";
	double ns[WAYS];
	char text[32];

	set_ways(lanes, write);
	measure(ns);
	add_row(name, "processor", 1.10, ns);
	snprintf(text, sizeof(text), "%.0f", ns[HOST] / TIMES / 1000);
	bench_must_errno("setenv", !setenv("MRFAB_RUNTIME_US_PER_MIB", text, 1));
	measure(ns);
	add_row(name, "device", 0.85, ns);
	unsetenv("MRFAB_RUNTIME_US_PER_MIB");
}

void part_device(struct lanes *lanes)
{
	/* Threads that copy do not sleep longer than a copy takes. */
	bench_must_errno("prctl", !prctl(PR_SET_TIMERSLACK, 1));
	start_threads(lanes);
	report_add(
		"\n## Memory of a device\n\n"
		"1 MiB, one at a time, from or to memory that only the runtime of its device can "
		"copy (a\nstand-in), against *copy + host*: all of it copied by the runtime, and "
		"the same transfer from\nor to registered memory of the host. A copy is either "
		"the processor's, or the device's, and\nthen the processor is free meanwhile; "
		"the device is as fast as the transfer.\n\n"
		"| | copies | copy / host | staged / (copy + host) | staged again / (copy + host) "
		"|\n| --- | --- | ---: | ---: | ---: |\n");
	for (int write = 0; write < 2; write++)
		add_rows(lanes, write);
	/* As it was. */
	bench_must_errno("prctl", !prctl(PR_SET_TIMERSLACK, 0));
}

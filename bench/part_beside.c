/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small writes of a thread while another thread's call pins a large buffer that nobody
 * registered, for a peer that does not answer, on the same endpoint. There is only one
 * processor, and the other thread has it while this one sleeps, between its writes. So what a
 * write takes longer is what it waits for the other thread, for the endpoint's lock or in the
 * kernel.
 *
 * With two processors it is the kernel that makes single writes wait: 15 to 25 ms (Linux 6.12,
 * emulated) whether the other thread is in fi_write or in ibv_reg_mr, with nothing of ours.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "parts.h"

#define LARGE ((size_t)1 << 30)
#define PAUSE_US 100
#define WRITES 1000u

enum { ALONE, BESIDE, AGAIN, SERIES };

static struct beside {
	struct fab *fab;
	struct work_remote remote; /* of the small writes */
	fi_addr_t silent;
	void *large;
	atomic_int called, returned;
	int large_done;
	double ns[SERIES][WRITES];
	unsigned n[SERIES];
} b;

/* In small pages, of which there are most: pinning them takes long. */
static void alloc_large(void)
{
	b.large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bench_must_errno("mmap", b.large != MAP_FAILED);
	madvise(b.large, LARGE, MADV_NOHUGEPAGE);
	memset(b.large, 1, LARGE);
}

/* An address in the device's network that nobody has. */
static void insert_silent(void)
{
	char name[FAB_NAME_LEN];
	struct sockaddr_in sin;

	fab_name(b.fab, name);
	memcpy(&sin, name, sizeof(sin));
	sin.sin_addr.s_addr = htonl((ntohl(sin.sin_addr.s_addr) & ~0xffu) | 250);
	bench_must("fi_av_insert", fi_av_insert(b.fab->av, &sin, 1, &b.silent, 0, NULL) - 1);
}

static void *write_large(void *arg)
{
	bench_yield();
	atomic_store(&b.called, 1);
	bench_must("fi_write", fi_write(b.fab->ep, b.large, LARGE, NULL, b.silent, 0, 1, &b));
	atomic_store(&b.returned, 1);
	return arg;
}

/* 0: no small write is done. The large one can only fail. */
static int take(void)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(b.fab->cq, &entry, 1);

	if (n != -FI_EAVAIL)
		return n == 1;
	bench_must_errno("fi_cq_readerr", fi_cq_readerr(b.fab->cq, &err, 0) == 1);
	if (err.op_context != &b)
		bench_must("completion", err.err);
	b.large_done = 1;
	return 0;
}

static double write_small(void)
{
	static uint64_t word;
	uint64_t start = bench_now();

	bench_must("fi_write", fi_write(b.fab->ep, &word, sizeof(word), NULL, b.fab->peer,
					b.remote.addr, b.remote.key, &word));
	while (!take())
		;
	return (double)(bench_now() - start);
}

/* Until all are done, or *until. */
static void run(int series, const atomic_int *until)
{
	unsigned i;

	for (i = 0; i < WRITES && !(until && atomic_load(until)); i++) {
		usleep(PAUSE_US);
		b.ns[series][i] = write_small();
	}
	b.n[series] = i;
}

static void run_beside(void)
{
	pthread_t thread;

	bench_must("pthread_create", pthread_create(&thread, NULL, write_large, NULL));
	while (!atomic_load(&b.called))
		usleep(PAUSE_US);
	run(BESIDE, &b.returned);
	bench_must("pthread_join", pthread_join(thread, NULL));
	fi_cancel(&b.fab->ep->fid, &b);
	while (!b.large_done)
		take();
}

static int compare(const void *a, const void *c)
{
	double x = *(const double *)a, y = *(const double *)c;

	return (x > y) - (x < y);
}

static double quantile(int series, double q)
{
	return b.ns[series][(unsigned)(q * (b.n[series] - 1))];
}

static void add_row(int series, const char *what)
{
	qsort(b.ns[series], b.n[series], sizeof(double), compare);
	report_add("| %s | %u | %.1f | %.1f | %.1f |\n", what, b.n[series],
		   quantile(series, 0.5) / 1000, quantile(series, 0.99) / 1000,
		   quantile(series, 1) / 1000);
}

static void report(void)
{
	report_add("\n## Small writes beside a large one\n\n"
		   "Writes of 8 bytes, one at a time, from unregistered local memory, in thousands "
		   "of instructions\n"
		   "until the completion is read. *Beside*: meanwhile another thread is in "
		   "`fi_write` of an\n"
		   "unregistered buffer of 1 GiB, which is being pinned, on the same endpoint, to "
		   "a peer that does\n"
		   "not answer. That thread has the processor while this one sleeps between its "
		   "writes, so any extra\n"
		   "time is time that the writes spend waiting for it.\n\n"
		   "| | writes | median | 99 of 100 | longest |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	add_row(ALONE, "alone");
	add_row(BESIDE, "beside");
	add_row(AGAIN, "alone again");
	report_target(1.05, quantile(BESIDE, 0.5) / quantile(ALONE, 0.5),
		      "write of 8 B beside one of 1 GiB / alone, median");
	report_target(10, quantile(BESIDE, 1) / 1e6,
		      "write of 8 B beside one of 1 GiB, the longest, millions of instructions");
}

void part_beside(struct lanes *lanes)
{
	b.fab = &lanes->fab[LANE_DEFAULT];
	b.remote = lanes->lane[LANE_DEFAULT].access.remote;
	alloc_large();
	insert_silent();
	bench_eager();
	run(ALONE, NULL);
	run_beside();
	run(AGAIN, NULL);
	bench_yield();
	munmap(b.large, LARGE);
	report();
}

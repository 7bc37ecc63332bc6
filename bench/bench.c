/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"

static void die(const char *call, int err)
{
	fprintf(stderr, "bench: %s: %s\n", call, strerror(err));
	exit(2);
}

void bench_must(const char *call, long ret)
{
	if (ret)
		die(call, (int)labs(ret));
}

void bench_must_errno(const char *call, int ok)
{
	if (!ok)
		die(call, errno);
}

void bench_yield(void)
{
	struct sched_param param = { 0 };

	bench_must_errno("sched_setscheduler", !sched_setscheduler(0, SCHED_IDLE, &param));
}

void bench_eager(void)
{
	struct sched_param param = { 0 };

	bench_must_errno("sched_setscheduler", !sched_setscheduler(0, SCHED_OTHER, &param));
}

void *bench_alloc(size_t len)
{
	void *memory = NULL;

	bench_must("posix_memalign", posix_memalign(&memory, 4096, len));
	memset(memory, 1, len);
	return memory;
}

uint64_t bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double children_ns(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

#define SETTLE_US 60000

void bench_rounds(struct bench_series *series, int n, int rounds)
{
	for (int round = -1; round < rounds; round++) {
		int slot = round < 0 ? 0 : round;

		for (int k = 0; k < n; k++) {
			int i = (k + round + 1) % n;
			double children = children_ns();
			uint64_t start;

			/* What the one before has left for the kernel to do is done. */
			usleep(SETTLE_US);
			start = bench_now();

			series[i].work(series[i].arg);
			series[i].ns[slot] = (double)(bench_now() - start);
			series[i].children[slot] = children_ns() - children;
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_middle(const double *values, int n)
{
	double sorted[BENCH_MAX_ROUNDS], sum = 0;
	int drop = n / 4;

	memcpy(sorted, values, (size_t)n * sizeof(*values));
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	for (int i = drop; i < n - drop; i++)
		sum += sorted[i];
	return sum / (n - 2 * drop);
}

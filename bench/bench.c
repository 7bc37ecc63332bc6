/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

void bench_rounds(struct bench_series *series, int n, int rounds)
{
	for (int round = -1; round < rounds; round++) {
		for (int i = 0; i < n; i++) {
			uint64_t start = bench_now();

			series[i].work(series[i].arg);
			if (round >= 0)
				series[i].ns[round] = (double)(bench_now() - start);
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(const double *values, int n)
{
	double sorted[BENCH_MAX_ROUNDS];

	memcpy(sorted, values, (size_t)n * sizeof(*values));
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double bench_ratio(const struct bench_series *series, const struct bench_series *base,
		   int rounds)
{
	return bench_median(series->ns, rounds) / bench_median(base->ns, rounds);
}

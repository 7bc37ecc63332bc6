/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cost.h"

void cost_says(const char *what)
{
	fprintf(stderr, "bench: %13.1f s  %s\n", (double)bench_now() / 1e9, what);
}

int cost_print(const double *cost, int n)
{
	for (int i = 0; i < n; i++)
		printf("%.3f\n", cost[i]);
	return fflush(stdout) ? 2 : 0;
}

static FILE *start(const char *program)
{
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	FILE *out;

	bench_must_errno("readlink", n > 0);
	path[n] = '\0';
	snprintf(strrchr(path, '/') + 1, 64, "%s", program);
	out = popen(path, "r");
	bench_must_errno(program, !!out);
	return out;
}

void cost_read(const char *program, double *cost, int n)
{
	FILE *out = start(program);
	int got = 0;

	while (got < n && fscanf(out, "%lf", &cost[got]) == 1)
		got++;
	bench_must(program, pclose(out) || got < n);
}

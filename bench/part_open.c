/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "parts.h"

#define ROUNDS 5

enum { RAW, OURS, OTHER, AGAIN, PROGRAMS };

struct program {
	char path[PATH_MAX];
	int failed;
};

static void find(struct program *program, const char *name)
{
	char *path = program->path;
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	bench_must_errno("readlink", n > 0);
	path[n] = '\0';
	path = strrchr(path, '/') + 1;
	snprintf(path, PATH_MAX - (size_t)(path - program->path), "%s", name);
	program->failed = 0;
}

static void start(void *arg)
{
	struct program *program = arg;
	char *argv[] = { program->path, NULL };
	int status;
	pid_t pid;

	if (program->failed)
		return;
	bench_must(program->path, posix_spawn(&pid, program->path, NULL, NULL, argv, environ));
	bench_must_errno("waitpid", waitpid(pid, &status, 0) == pid);
	program->failed = status;
}

void part_open(void)
{
	static const char *const names[] = { "open_raw", "open_ours", "open_other", "open_raw" };
	struct bench_series series[PROGRAMS];
	struct program program[PROGRAMS];
	double processor[PROGRAMS];

	for (int i = 0; i < PROGRAMS; i++) {
		find(&program[i], names[i]);
		series[i] = (struct bench_series){ .work = start, .arg = &program[i] };
	}
	bench_rounds(series, PROGRAMS, ROUNDS);
	bench_must("open_raw", program[RAW].failed);
	bench_must("open_ours", program[OURS].failed);
	for (int i = 0; i < PROGRAMS; i++) {
		processor[i] = program[i].failed ? NAN : bench_middle(series[i].children, ROUNDS);
	}
	report_add("\n## From the start of a process to an open domain\n\n"
		   "Raw: `rdma_bind_addr` and `ibv_alloc_pd`. The end of the process is "
		   "included.\n\n"
		   "| | libmrfab / raw | libfabric / raw | raw again / raw |\n"
		   "| --- | ---: | ---: | ---: |\n");
	report_add("| processor time |");
	for (int i = OURS; i < PROGRAMS; i++)
		report_ratio(processor[i] / processor[RAW]);
	report_add("\n");
	report_target(2, processor[OURS] / processor[RAW],
		      "processor time from process start to open domain / raw");
}

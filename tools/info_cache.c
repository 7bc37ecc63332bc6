/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "buf/gauge.h"
#include "info_cache.h"

static bool is_gauge(int dir, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	return !strncmp(target, "/memfd:" MRF_GAUGE_NAME " ", sizeof(MRF_GAUGE_NAME) + 7);
}

/* A forked child has its parent's, too. */
static bool read_gauge(int dir, const char *name, const char *pid, struct mrf_gauge *gauge)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = pread(fd, gauge, sizeof(*gauge), 0);
	close(fd);
	return n == (ssize_t)sizeof(*gauge) && gauge->magic == MRF_GAUGE_MAGIC &&
	       gauge->pid == atoll(pid);
}

static void print_limit(const char *name, uint64_t limit)
{
	if (limit == UINT64_MAX)
		printf(" (%s)\n", name);
	else
		printf(" (at most %" PRIu64 ")\n", limit);
}

static void print_gauge(struct mrf_gauge *gauge)
{
	uint64_t hits = 0;

	for (int i = 0; i < MRF_GAUGE_STRIPES; i++)
		hits += mrf_gauge_get(&gauge->stripe[i].hits);
	gauge->domain[sizeof(gauge->domain) - 1] = '\0';
	printf("cache of local buffers: %s\n", gauge->domain);
	printf("    hits: %" PRIu64 "\n    misses: %" PRIu64 "\n", hits,
	       mrf_gauge_get(&gauge->misses));
	printf("    evictions: %" PRIu64 "\n    invalidations: %" PRIu64 "\n",
	       mrf_gauge_get(&gauge->evictions), mrf_gauge_get(&gauge->invalidations));
	printf("    entries: %" PRIu64, mrf_gauge_get(&gauge->entries));
	print_limit("no limit", gauge->max_entries);
	printf("    bytes: %" PRIu64, mrf_gauge_get(&gauge->bytes));
	print_limit("no limit", gauge->max_bytes);
}

static int print_gauges(DIR *dir, const char *pid)
{
	struct mrf_gauge gauge;
	struct dirent *entry;
	int found = 0;

	while ((entry = readdir(dir))) {
		if (!is_gauge(dirfd(dir), entry->d_name) ||
		    !read_gauge(dirfd(dir), entry->d_name, pid, &gauge))
			continue;
		print_gauge(&gauge);
		found++;
	}
	return found;
}

/* -1 and errno: the folder cannot be opened. */
static int print_open_files(const char *path, const char *pid)
{
	DIR *dir = opendir(path);
	int found = dir ? print_gauges(dir, pid) : -1;

	if (dir)
		closedir(dir);
	return found;
}

/* The process's own folder is empty once its main() has ended by pthread_exit. */
static int print_open_files_of_threads(const char *pid)
{
	char path[64 + sizeof(((struct dirent *)0)->d_name)];
	struct dirent *task;
	int found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	while (dir && found <= 0 && (task = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/task/%s/fd", pid, task->d_name);
		if (task->d_name[0] != '.')
			found = print_open_files(path, pid);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool info_cache_print(const char *pid)
{
	char path[64];
	int found;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	found = print_open_files(path, pid);
	if (found < 0) {
		fprintf(stderr, "mrfab_info: process %s cannot be looked at: %s\n", pid,
			strerror(errno));
		return false;
	}
	if (!found)
		found = print_open_files_of_threads(pid) > 0;
	if (!found)
		fprintf(stderr, "mrfab_info: process %s has no domain with an endpoint\n", pid);
	return found;
}

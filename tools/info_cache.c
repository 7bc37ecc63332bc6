/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "buf/gauge.h"

static void print_limit(const char *name, uint64_t limit)
{
	if (limit == UINT64_MAX)
		printf(" (%s)\n", name);
	else
		printf(" (at most %" PRIu64 ")\n", limit);
}

static uint64_t all_hits(const struct mrf_gauge *gauge)
{
	uint64_t hits = 0;

	for (int i = 0; i < MRF_GAUGE_STRIPES; i++)
		hits += mrf_gauge_get(&gauge->stripe[i].hits);
	return hits;
}

static void print_text(const struct mrf_gauge *gauge)
{
	uint64_t hits = all_hits(gauge);

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

static void print_json(const struct mrf_gauge *gauge)
{
	printf("\n  {\"cache\": {\"domain\": \"%s\", \"hits\": %" PRIu64 ", \"misses\": %" PRIu64
	       ", \"evictions\": %" PRIu64 ", \"invalidations\": %" PRIu64 ", \"entries\": %" PRIu64
	       ", \"bytes\": %" PRIu64 "}}",
	       gauge->domain, all_hits(gauge), mrf_gauge_get(&gauge->misses),
	       mrf_gauge_get(&gauge->evictions), mrf_gauge_get(&gauge->invalidations),
	       mrf_gauge_get(&gauge->entries), mrf_gauge_get(&gauge->bytes));
}

static void print_gauge(struct info_pid *of, int fd)
{
	struct mrf_gauge gauge;

	if (pread(fd, &gauge, sizeof(gauge), 0) != (ssize_t)sizeof(gauge) ||
	    gauge.magic != MRF_GAUGE_MAGIC || gauge.pid != atoll(of->pid))
		return;
	gauge.domain[sizeof(gauge.domain) - 1] = '\0';
	if (of->json && of->shown++)
		putchar(',');
	else if (!of->json)
		of->shown++;
	if (of->json)
		print_json(&gauge);
	else
		print_text(&gauge);
}

int info_cache_print(struct info_pid *of)
{
	return info_pid_files(of, MRF_GAUGE_NAME, print_gauge);
}

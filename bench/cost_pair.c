/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "bench.h"
#include "cost_pair.h"

struct fab pair_target, pair_initiator;
struct raw pair_raw_target, pair_raw_initiator;
struct work_access pair_access;

struct accepting {
	uint8_t *region;
	size_t len;
};

static void *accept_raw(void *arg)
{
	const struct accepting *what = arg;

	raw_accept(&pair_raw_target, what->region, what->len);
	return NULL;
}

void pair_connect_raw(uint8_t *region, uint8_t *local, size_t len)
{
	struct accepting what = { region, len };
	pthread_t thread;
	uint16_t port;

	raw_open(&pair_raw_target);
	raw_open(&pair_raw_initiator);
	port = raw_listen(&pair_raw_target);
	bench_must("pthread_create", pthread_create(&thread, NULL, accept_raw, &what));
	raw_connect(&pair_raw_initiator, port, local, len);
	bench_must("pthread_join", pthread_join(thread, NULL));
}

void pair_access_fab(struct fid_mr *mr)
{
	pair_access.remote.key = fi_mr_key(mr);
	pair_access.remote.addr = 0;
	fab_access(&pair_initiator, &pair_access);
}

static void connect_fab(uint8_t *region, uint8_t *local)
{
	char name[FAB_NAME_LEN];

	bench_must("fab_open", fab_open(&pair_target, &fab_ours, 0, 0, region, PAIR_PAGE));
	bench_must("fab_open", fab_open(&pair_initiator, &fab_ours, 0, 0, local, PAIR_PAGE));
	fab_name(&pair_target, name);
	fab_insert(&pair_initiator, name);
	pair_access = (struct work_access){
		.write = 1, .buf = local, .len = 8, .depth = 1, .times = 1, .yield = 1
	};
	pair_access_fab(pair_target.mr);
}

void pair_connect(uint8_t *region, uint8_t *local)
{
	pair_connect_raw(region, local, PAIR_PAGE);
	connect_fab(region, local);
}

uint8_t *pair_map(size_t len)
{
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bench_must_errno("mmap", at != MAP_FAILED);
	return at;
}

void pair_add_mappings(unsigned n)
{
	uint8_t *at = pair_map((size_t)n * PAIR_PAGE);

	for (unsigned i = 0; i < n; i += 2)
		bench_must_errno("mprotect",
				 !mprotect(at + (size_t)i * PAIR_PAGE, PAIR_PAGE, PROT_NONE));
}

void pair_allow_mappings(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "we");

	bench_must_errno("max_map_count", file && fprintf(file, "131060\n") > 0 && !fclose(file));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo with one device and with many. Started by mrfab_bench (part_discover.c), for which it
 * prints thousands of instructions for each call, in the order of enum cost_discover. Makes
 * devices, so it has to be root, and removes them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fabric.h>
#include "cost.h"
#include "fab.h"

#define ROUNDS 6

struct question {
	const char *node;
	uint64_t flags;
	unsigned answers; /* or more: a device may have several addresses */
};

static void ask(void *arg)
{
	const struct question *question = arg;
	struct fi_info *all, *info;
	unsigned n = 0;

	bench_must("fi_getinfo", fi_getinfo(FI_VERSION(1, 13), question->node, NULL,
					    question->flags, NULL, &all));
	for (info = all; info; info = info->next)
		n++;
	bench_must("number of infos", n < question->answers);
	fi_freeinfo(all);
}

static double cost_of(const struct question *question)
{
	struct bench_series series = { .work = ask, .arg = (void *)question };

	bench_rounds(&series, 1, ROUNDS);
	return bench_middle(series.ns, ROUNDS) / 1000;
}

/* For each device but the one that is there. */
static void change(const char *commands)
{
	char line[256];

	for (int i = 1; i < COST_DEVICES; i++) {
		snprintf(line, sizeof(line), "i=%d; %s", i, commands);
		bench_must(line, system(line));
	}
}

int main(void)
{
	struct question any = { .answers = 1 };
	struct question source = { .node = BENCH_ADDRESS, .flags = FI_SOURCE, .answers = 1 };
	double cost[COST_DISCOVER];

	cost[DISCOVER_ONE] = cost_of(&any);
	change("ip link add mrfb$i type dummy && ip link set mrfb$i up && "
	       "ip address add 10.97.$i.1/24 dev mrfb$i && "
	       "rdma link add rxeb$i type rxe netdev mrfb$i");
	any.answers = COST_DEVICES;
	cost[DISCOVER_MANY] = cost_of(&any);
	cost[DISCOVER_SOURCE] = cost_of(&source);
	change("rdma link delete rxeb$i && ip link delete mrfb$i");
	return cost_print(cost, COST_DISCOVER);
}

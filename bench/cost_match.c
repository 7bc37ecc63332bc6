/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What matching costs, as the library's own code meets it: lib/match has no exported calls. Needs
 * no device. Started by mrfab_bench (part_match.c), for which it prints numbers, in the order of
 * enum cost_match.
 */
#include <stdlib.h>
#include "match/match.h"
#include "cost.h"

#define MOST 100000u
#define LOOKS 5000u
#define ROUNDS 3
#define SOURCES 7u

static const unsigned others[COST_MATCH_SIZES] = { 0, 1000, MOST };
static struct mrf_match match;
static struct mrf_match_recv *recvs;
static struct mrf_match_msg *msgs;

/* Of the ith receive or message: those that meet are the last ones. */
static uint64_t tag_of(unsigned i)
{
	return (uint64_t)i << 20;
}

static void post(unsigned i)
{
	mrf_match_post(&match, &recvs[i], tag_of(i), 0, MRF_MATCH_ANY);
}

static void keep(unsigned i)
{
	mrf_match_keep(&match, &msgs[i], i % SOURCES, tag_of(i));
}

static void post_and_match(void *arg)
{
	(void)arg;
	for (unsigned i = MOST; i < MOST + LOOKS; i++) {
		post(i);
		bench_must("a receive",
			   mrf_match_arrive(&match, i % SOURCES, tag_of(i)) != &recvs[i]);
	}
}

static void keep_all(void *arg)
{
	(void)arg;
	for (unsigned i = MOST; i < MOST + LOOKS; i++)
		keep(i);
}

static void take_all(void *arg)
{
	(void)arg;
	for (unsigned i = MOST; i < MOST + LOOKS; i++) {
		struct mrf_match_msg *msg = mrf_match_find(&match, tag_of(i), 0, MRF_MATCH_ANY);

		bench_must("a message", msg != &msgs[i]);
		mrf_match_take(&match, msg);
	}
}

/* Instructions of one. */
static double cost_of(void (*work)(void *arg))
{
	uint64_t begin = bench_now();

	work(NULL);
	return (double)(bench_now() - begin) / LOOKS;
}

/* How much more is posted and kept than before. */
static void add_others(unsigned from, unsigned to)
{
	for (; from < to; from++) {
		post(from);
		keep(from);
	}
}

static void measure(double *cost, unsigned size)
{
	double post_ns[ROUNDS], keep_ns[ROUNDS], take_ns[ROUNDS];

	for (int i = -1; i < ROUNDS; i++) { /* the first one does not count */
		int at = i < 0 ? 0 : i;

		post_ns[at] = cost_of(post_and_match);
		keep_ns[at] = cost_of(keep_all);
		take_ns[at] = cost_of(take_all);
	}
	cost[MATCH_POST + size] = bench_middle(post_ns, ROUNDS);
	cost[MATCH_KEEP + size] = bench_middle(keep_ns, ROUNDS);
	cost[MATCH_TAKE + size] = bench_middle(take_ns, ROUNDS);
}

int main(void)
{
	double cost[COST_MATCH];

	recvs = calloc(MOST + LOOKS, sizeof(*recvs));
	msgs = calloc(MOST + LOOKS, sizeof(*msgs));
	bench_must_errno("calloc", recvs && msgs);
	bench_must("mrf_match_init", mrf_match_init(&match));
	for (unsigned size = 0; size < COST_MATCH_SIZES; size++) {
		cost_says("matching");
		add_others(size ? others[size - 1] : 0, others[size]);
		measure(cost, size);
	}
	return cost_print(cost, COST_MATCH);
}

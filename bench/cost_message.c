/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What messages cost, both ends in one process and thread. Started by mrfab_bench
 * (part_message.c), for which it prints instructions, in the order of enum cost_message; 0 where
 * there is nothing to measure.
 */
#include <sched.h>
#include <stdio.h>
#include "cost.h"
#include "message.h"

#define TIMES 256u /* of messages that are not long */
#define STREAM 1024u
#define STREAM_LONG 64u
#define DEPTH_LONG 16u
/* In the first few of a round the agent takes part, which looks after endpoints that nobody polls. */
#define ROUNDS 9
#define TAG 1u
#define OTHER_TAGS 1000u

struct way {
	struct message_end end[2];
	int there;
	size_t len;
	unsigned times, depth;
};

static struct way ways[COST_MESSAGE_WAYS];

/* --- the work ----------------------------------------------------------------------- */

/* A message from one end to the other. */
static void pass(struct way *way, int from)
{
	struct message_end *sender = &way->end[from], *receiver = &way->end[!from];

	while (!sender->send(sender, way->len))
		sender->poll(sender);
	while (!receiver->poll(receiver))
		sender->poll(sender);
	receiver->post(receiver, MESSAGE_MAX);
}

/* The first one connects, for which threads have to run, and some libraries to be called. */
static void pass_first(struct way *way, int from)
{
	struct message_end *sender = &way->end[from], *receiver = &way->end[!from];

	while (!sender->send(sender, way->len)) {
		sender->poll(sender);
		receiver->poll(receiver);
		sched_yield();
	}
	while (!receiver->poll(receiver)) {
		sender->poll(sender);
		sched_yield();
	}
	receiver->post(receiver, MESSAGE_MAX);
}

static void ping_pong(void *arg)
{
	struct way *way = arg;

	for (unsigned i = 0; way->there && i < way->times; i++) {
		pass(way, 0);
		pass(way, 1);
	}
}

static void stream(void *arg)
{
	struct way *way = arg;
	unsigned sent = 0, come = 0, n;

	while (way->there && come < way->times) {
		while (sent < way->times && sent - come < way->depth &&
		       way->end[0].send(&way->end[0], way->len))
			sent++;
		way->end[0].poll(&way->end[0]);
		n = way->end[1].poll(&way->end[1]);
		come += n;
		while (n--)
			way->end[1].post(&way->end[1], MESSAGE_MAX);
	}
}

/* --- how long it takes -------------------------------------------------------------- */

static void measure(void (*work)(void *), size_t len, unsigned times, unsigned depth, double *cost)
{
	struct bench_series series[COST_MESSAGE_WAYS];

	for (int i = 0; i < COST_MESSAGE_WAYS; i++) {
		ways[i].len = len;
		ways[i].times = times;
		ways[i].depth = depth;
		series[i] = (struct bench_series){ .work = work, .arg = &ways[i] };
	}
	bench_rounds(series, COST_MESSAGE_WAYS, ROUNDS);
	for (int i = 0; i < COST_MESSAGE_WAYS; i++)
		cost[i] = ways[i].there ? bench_middle(series[i].ns, ROUNDS) / times : 0;
}

/* Long ones take long. */
static unsigned times_of(size_t len)
{
	size_t times = TIMES * (size_t)16384 / len;

	return times > TIMES ? TIMES : times < 4 ? 4 : (unsigned)times;
}

/* Behind receives with so many other tags; of this library alone. */
static void measure_tagged(double *cost)
{
	static const unsigned others[COST_MESSAGE_OTHERS] = { 0, 1000, 100000 };
	struct way *way = &ways[MESSAGE_NATIVE];
	struct bench_series series = { .work = ping_pong, .arg = way };

	way->len = 8;
	way->times = TIMES;
	for (int e = 0; e < 2; e++) {
		way->end[e].tag = TAG;
		way->end[e].post(&way->end[e], MESSAGE_MAX);
	}
	for (int i = 0; i < COST_MESSAGE_OTHERS; i++) {
		unsigned before = i ? others[i - 1] : 0;

		for (int e = 0; e < 2; e++)
			message_post_others(&way->end[e], OTHER_TAGS + before, others[i] - before);
		bench_rounds(&series, 1, ROUNDS);
		cost[i] = bench_middle(series.ns, ROUNDS) / TIMES;
	}
}

/* The first message of each end connects. */
static void begin(struct way *way)
{
	way->there = 1;
	way->len = 8;
	for (int e = 0; e < 2; e++) {
		for (int i = 0; i < MESSAGE_DEPTH; i++)
			way->end[e].post(&way->end[e], MESSAGE_MAX);
	}
	pass_first(way, 0);
	pass_first(way, 1);
}

static void open_all(void)
{
	static struct fab_lib other;
	int ret;

	bench_eager();
	message_open_raw(ways[MESSAGE_RAW].end);
	begin(&ways[MESSAGE_RAW]);
	bench_must("native", message_open_fab(ways[MESSAGE_NATIVE].end, &fab_ours, FAB_NATIVE));
	begin(&ways[MESSAGE_NATIVE]);
	bench_must("default", message_open_fab(ways[MESSAGE_DEFAULT].end, &fab_ours, 0));
	begin(&ways[MESSAGE_DEFAULT]);
	if (fab_find_other(&other)) {
		ret = message_open_fab(ways[MESSAGE_OTHER].end, &other, FAB_NATIVE);
		if (ret)
			fprintf(stderr, "bench: without libfabric: it gives error %d\n", -ret);
		else
			begin(&ways[MESSAGE_OTHER]);
	}
	bench_yield();
}

int main(void)
{
	static const size_t sizes[COST_MESSAGE_SIZES] = { 8,	   64,	    256,    1024,
							  4096,	   8192,    16384,  65536,
							  1 << 18, 1 << 20, 1 << 22 };
	double cost[COST_MESSAGE];

	open_all();
	for (int i = 0; i < COST_MESSAGE_SIZES; i++) {
		cost_says("messages, ping-pong");
		measure(ping_pong, sizes[i], times_of(sizes[i]), 1,
			&cost[MESSAGE_PING_PONG + i * COST_MESSAGE_WAYS]);
	}
	cost_says("messages, streams");
	measure(stream, 8, STREAM, MESSAGE_DEPTH, &cost[MESSAGE_STREAM]);
	measure(stream, 65536, STREAM_LONG, DEPTH_LONG, &cost[MESSAGE_STREAM_LONG]);
	cost_says("messages, tagged");
	measure_tagged(&cost[MESSAGE_TAGGED]);
	return cost_print(cost, COST_MESSAGE);
}

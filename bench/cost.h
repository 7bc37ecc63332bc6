/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers from programs that lie beside mrfab_bench and that it starts: what they measure
 * needs a process of its own.
 */
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include "bench.h"

/* Instructions to make one kernel region, or one entry, with room for it and without. */
enum { RAW_REG, RAW_BOTH, OUR_REG, OUR_BOTH, COST_MISSES };

/* Of cost_cache. Of MAP_*, the second number is with a page that is touched. */
enum cost_cache {
	MAP_BEFORE,
	MAP_ONE = MAP_BEFORE + 2,
	MAP_MANY = MAP_ONE + 2,
	HIT_FEW = MAP_MANY + 2,
	HIT_MANY,
	MISS_SMALL,
	MISS_LARGE = MISS_SMALL + COST_MISSES,
	COST_CACHE = MISS_LARGE + COST_MISSES
};

/*
 * Of cost_demand. LIFE*: from registration to close with one access by a peer, ours / raw.
 * UNMAP_*: instructions of a munmap. TOLD: an access to each of many regions after another one was
 * unmapped / before.
 */
enum cost_demand {
	LIFE,
	LIFE_PINS,
	LIFE_MAPS,
	LIFE_BOTH,
	UNMAP_ALONE,
	UNMAP_BESIDE,
	TOLD,
	COST_DEMAND
};

/* Of cost_lease: ours / raw, one at a time and WORK_DEPTH in flight. */
enum cost_lease {
	LEASE_FEW,
	LEASE_1000 = LEASE_FEW + 2,
	LEASE_30000 = LEASE_1000 + 2,
	COST_LEASE = LEASE_30000 + 2
};

#define COST_DEVICES 20

/*
 * Of cost_discover: thousands of instructions of fi_getinfo with one device, and with COST_DEVICES:
 * all of them; FI_SOURCE and the address of one.
 */
enum cost_discover { DISCOVER_ONE, DISCOVER_MANY, DISCOVER_SOURCE, COST_DISCOVER };

/* Of cost_match: with so many sizes of what else is posted and kept. */
#define COST_MATCH_SIZES 3

enum cost_match {
	MATCH_POST,
	MATCH_KEEP = MATCH_POST + COST_MATCH_SIZES,
	MATCH_TAKE = MATCH_KEEP + COST_MATCH_SIZES,
	COST_MATCH = MATCH_TAKE + COST_MATCH_SIZES
};

/* Of cost_message: the ways to carry messages, the sizes, and how many others are posted. */
enum { MESSAGE_RAW, MESSAGE_NATIVE, MESSAGE_DEFAULT, MESSAGE_OTHER, COST_MESSAGE_WAYS };
#define COST_MESSAGE_SIZES 11
#define COST_MESSAGE_OTHERS 3

/*
 * Instructions. PING_PONG: of a round trip, each size in all ways. STREAM: for each message with
 * many in flight, in all ways, and of long ones. TAGGED: of a round trip of this library.
 */
enum cost_message {
	MESSAGE_PING_PONG,
	MESSAGE_STREAM = MESSAGE_PING_PONG + COST_MESSAGE_SIZES * COST_MESSAGE_WAYS,
	MESSAGE_STREAM_LONG = MESSAGE_STREAM + COST_MESSAGE_WAYS,
	MESSAGE_TAGGED = MESSAGE_STREAM_LONG + COST_MESSAGE_WAYS,
	COST_MESSAGE = MESSAGE_TAGGED + COST_MESSAGE_OTHERS
};

/* In the program: what comes next, to watch. */
void cost_says(const char *what);
/* In the program: its last act. The exit status. */
int cost_print(const double *cost, int n);
/* In mrfab_bench: starts the program and reads n numbers. */
void cost_read(const char *program, double *cost, int n);

#endif

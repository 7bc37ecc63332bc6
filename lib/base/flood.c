/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/env.h"
#include "base/flood.h"
#include "base/fork.h"

#define CODES \
	10000 /* codes have four digits; pages of codes that never come stay untouched \
	       */

static struct flood {
	_Atomic uint64_t due; /* ms: when the lines logged so far are paid for */
	atomic_uint left_out; /* and not told yet */
	atomic_uchar kind, subsys;
} floods[CODES];

static atomic_bool untold;	 /* some left_out is not 0 */
static _Atomic uint64_t tell_at; /* ms: not before */
static _Atomic uint64_t owner;	 /* mrf_fork_here() of the process that counted */

static uint64_t interval_ms(void)
{
	return (uint64_t)mrf_env_int(MRF_PARAM_LOG_INTERVAL);
}

void mrf_flood_reset(void)
{
	size_t i;

	for (i = 0; i < CODES; i++) {
		if (atomic_load(&floods[i].due))
			memset(&floods[i], 0, sizeof(floods[i]));
	}
	atomic_store(&untold, false);
	atomic_store(&tell_at, 0);
}

/* A child forgets what its parent has left out: the parent tells of that. */
static void notice_fork(void)
{
	uint64_t here = mrf_fork_here(), was = atomic_load(&owner);

	if (was != here && atomic_compare_exchange_strong(&owner, &was, here) && was)
		mrf_flood_reset();
}

/*
 * Each line costs an interval, and up to MRF_FLOOD_FIRST intervals are lent. One word,
 * so that it takes no lock.
 */
static bool pays(struct flood *flood, uint64_t now, uint64_t interval)
{
	uint64_t due = atomic_load(&flood->due), from;

	do {
		from = due > now ? due : now;
		if (from - now > (MRF_FLOOD_FIRST - 1) * interval)
			return false;
	} while (!atomic_compare_exchange_weak(&flood->due, &due, from + interval));
	return true;
}

static void leave_out(struct flood *flood, struct mrf_flood_line line)
{
	atomic_store_explicit(&flood->kind, line.kind, memory_order_relaxed);
	atomic_store_explicit(&flood->subsys, line.subsys, memory_order_relaxed);
	atomic_fetch_add(&flood->left_out, 1);
}

bool mrf_flood_passes(struct mrf_flood_line line, unsigned *left_out)
{
	uint64_t interval = interval_ms(), now;

	*left_out = 0;
	if (!interval || line.code >= CODES)
		return true;
	notice_fork();
	now = (uint64_t)mrf_now_ms();
	if (pays(&floods[line.code], now, interval)) {
		*left_out = atomic_exchange(&floods[line.code].left_out, 0);
		return true;
	}
	leave_out(&floods[line.code], line);
	if (!atomic_exchange(&untold, true))
		atomic_store(&tell_at, now + interval);
	return false;
}

/* If several threads find that the time has come, only one gets true. */
static bool time_to_tell(uint64_t now)
{
	uint64_t at = atomic_load(&tell_at);

	return now >= at && atomic_compare_exchange_strong(&tell_at, &at, now + interval_ms());
}

static void tell_one(unsigned code, void (*tell)(struct mrf_flood_line, unsigned))
{
	struct flood *flood = &floods[code];
	struct mrf_flood_line line = { .code = code };
	unsigned n = atomic_load(&flood->left_out) ? atomic_exchange(&flood->left_out, 0) : 0;

	if (!n)
		return;
	line.kind = (char)atomic_load(&flood->kind);
	line.subsys = atomic_load(&flood->subsys);
	tell(line, n);
}

void mrf_flood_rest(bool end, void (*tell)(struct mrf_flood_line line, unsigned left_out))
{
	unsigned code;

	if (mrf_likely(!atomic_load(&untold)))
		return;
	notice_fork();
	if (!end && !time_to_tell((uint64_t)mrf_now_ms()))
		return;
	if (!atomic_exchange(&untold, false))
		return;
	for (code = 0; code < CODES; code++)
		tell_one(code, tell);
}

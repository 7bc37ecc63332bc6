/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock for all waiting and all deadlines: CLOCK_MONOTONIC. */
#ifndef MRF_BASE_CLOCK_H
#define MRF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t mrf_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* In ms, of the last tick: a few ms late, for those who ask often. */
static inline int64_t mrf_now_tick(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static inline int64_t mrf_now_us(void)
{
	return mrf_now_ns() / 1000;
}

static inline int64_t mrf_now_ms(void)
{
	return mrf_now_ns() / 1000000;
}

#endif

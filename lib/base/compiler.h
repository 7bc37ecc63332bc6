/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiler helpers that every layer uses. No state, nothing can fail.
 */
#ifndef MRF_BASE_COMPILER_H
#define MRF_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

/* Put in front of the definition of a function that the version map exports. */
#define MRF_EXPORT __attribute__((visibility("default")))

#define mrf_likely(x) __builtin_expect(!!(x), 1)
/* For a function that must not cost a call on a fast path although other code calls it, too. */
#define MRF_ALWAYS_INLINE inline __attribute__((always_inline))
#define mrf_unlikely(x) __builtin_expect(!!(x), 0)

#define MRF_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define mrf_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define MRF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

static inline uint64_t mrf_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t mrf_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations that fail on order. The test is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc and includes this once;
 * alloc_fail_after(n) lets n allocations of this process pass and fails every later one
 * until alloc_heal().
 */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static atomic_bool alloc_failing;
static atomic_int alloc_left;

static inline void alloc_fail_after(int n)
{
	atomic_store(&alloc_left, n);
	atomic_store(&alloc_failing, true);
}

static inline void alloc_heal(void)
{
	atomic_store(&alloc_failing, false);
}

/* The value of call, during which every allocation after the first n fails. */
#define failing_after(n, call)           \
	({                               \
		__typeof__(call) value_; \
                                         \
		alloc_fail_after(n);     \
		value_ = (call);         \
		alloc_heal();            \
		value_;                  \
	})

static bool alloc_fails(void)
{
	return atomic_load(&alloc_failing) && atomic_fetch_sub(&alloc_left, 1) <= 0;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return alloc_fails() ? NULL : __real_aligned_alloc(align, size);
}

#endif

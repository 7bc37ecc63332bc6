/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One allocation that fails, wherever in the library and in whichever thread. The test is
 * linked with $(FAIL_ONCE_WRAP) and includes this once.
 */
#ifndef FAIL_ONCE_H
#define FAIL_ONCE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The nth allocation that the library makes fails: those of this thread count between
 * library_enter and library_leave, because the test framework allocates too; those of all
 * others always do.
 */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static atomic_int alloc_left; /* 0: none fails */
static atomic_bool alloc_failed;
static _Thread_local int outside;

static bool alloc_fails(void)
{
	if (outside || !atomic_load(&alloc_left) || atomic_fetch_sub(&alloc_left, 1) != 1)
		return false;
	atomic_store(&alloc_failed, true);
	return true;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return alloc_fails() ? NULL : __real_realloc(old, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
	return alloc_fails() ? ENOMEM : __real_posix_memalign(out, align, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return alloc_fails() ? NULL : __real_aligned_alloc(align, size);
}

static void alloc_order(unsigned nth)
{
	atomic_store(&alloc_failed, false);
	atomic_store(&alloc_left, (int)nth);
}

#define LIBRARY(call)                    \
	({                               \
		__typeof__(call) value_; \
                                         \
		outside--;               \
		value_ = (call);         \
		outside++;               \
		value_;                  \
	})

/* Was the order met? */
static bool alloc_met(void)
{
	return atomic_load(&alloc_failed);
}

static void alloc_heal(void)
{
	atomic_store(&alloc_left, 0);
}

#endif

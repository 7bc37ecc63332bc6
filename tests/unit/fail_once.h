/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One allocation that fails, of memory, a descriptor or a thread, wherever in the library and
 * in whichever thread. The test is
 * linked with $(FAIL_ONCE_WRAP) and includes this once.
 */
#ifndef FAIL_ONCE_H
#define FAIL_ONCE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

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
char *__real_strdup(const char *text);
FILE *__real_fopen(const char *path, const char *mode);
ssize_t __real_getline(char **line, size_t *room, FILE *file);
int __real_eventfd(unsigned count, int flags);
int __real_epoll_create1(int flags);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
FILE *__wrap_fopen(const char *path, const char *mode);
ssize_t __wrap_getline(char **line, size_t *room, FILE *file);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);

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

char *__wrap_strdup(const char *text)
{
	return alloc_fails() ? NULL : __real_strdup(text);
}

static int no_memory(void)
{
	errno = ENOMEM;
	return -1;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return alloc_fails() ? (no_memory(), NULL) : __real_fopen(path, mode);
}

ssize_t __wrap_getline(char **line, size_t *room, FILE *file)
{
	return alloc_fails() ? no_memory() : __real_getline(line, room, file);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return alloc_fails() ? no_memory() : __real_eventfd(count, flags);
}

int __wrap_epoll_create1(int flags)
{
	return alloc_fails() ? no_memory() : __real_epoll_create1(flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return alloc_fails() ? ENOMEM : __real_pthread_create(thread, attr, start, arg);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of the hooks share: a listener that looks for one page in what it is told, and
 * objects that were linked in several ways (hooked.mk).
 */
#ifndef HOOKED_H
#define HOOKED_H

#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include "base/compiler.h"
#include "monitor/hooks.h"
#include "unit.h"

#define PAGE 4096u
#define BIG (1u << 20)

/* Sanitizers have allocators of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_HEAP false
#else
#define OWN_HEAP true
#endif

static char *want;	     /* a page that is looked for in what is told */
static atomic_uint heard;    /* how often it was among it */
static atomic_uint told;     /* how often anything was */
static unsigned char looked; /* what was there when it was told; 0: it was not there */
static atomic_bool quiet;    /* nothing was under way there when it was told */

static inline void changing(uintptr_t start, uintptr_t end)
{
	unsigned char in;
	uintptr_t page = (uintptr_t)want & ~(uintptr_t)(PAGE - 1);

	atomic_fetch_add(&told, 1);
	if (start > (uintptr_t)want || end <= (uintptr_t)want)
		return;
	if (!atomic_load(&heard))
		looked = mincore((void *)page, PAGE, &in) ? 0 : (unsigned char)*want;
	atomic_store(&quiet, mrf_hooks_quiet(page, page + PAGE));
	atomic_fetch_add(&heard, 1);
}

static struct mrf_hooks_listener listener = { .changing = changing };

static inline void watch(void *at)
{
	want = at;
	looked = 0;
	atomic_store(&heard, 0);
	atomic_store(&told, 0);
	atomic_store(&listener.armed, 1);
}

/* Before it was done, while it was announced. The C library may call itself by a slot. */
static inline void must_have_heard(void)
{
	ck_assert_uint_ge(atomic_load(&heard), 1);
	ck_assert_uint_eq(looked, 42);
	ck_assert(!atomic_load(&quiet));
	ck_assert(mrf_hooks_quiet((uintptr_t)want, (uintptr_t)want + 1));
}

static inline void must_not_have_heard(void)
{
	ck_assert_uint_eq(atomic_load(&heard), 0);
}

static inline void setup(void)
{
	ck_assert_int_eq(mrf_hooks_listen(&listener), 0);
	ck_assert(mrf_hooks_in_force());
}

static inline void *map(size_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	memset(mem, 42, pages * PAGE);
	return mem;
}

/* A mapping of its own, if the allocator is the C library's. */
static inline void *big(void)
{
	void *mem;

	mallopt(M_MMAP_THRESHOLD, BIG / 4);
	mem = malloc(BIG);
	ck_assert_ptr_nonnull(mem);
	memset(mem, 42, BIG);
	return mem;
}

static const char *const objects[] = {
	HOOKED "hooked_lazy.so",
	HOOKED "hooked_now.so",
	HOOKED "hooked_noplt.so",
};

static inline void *function(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	ck_assert_msg(found, "%s", dlerror());
	return found;
}

static inline void must_hear_from(void *handle)
{
	int (*unmap)(void *, size_t) = (int (*)(void *, size_t))function(handle, "hooked_munmap");
	int (*by_pointer)(void *, size_t) =
		(int (*)(void *, size_t))function(handle, "hooked_by_pointer");
	void (*release)(void *) = (void (*)(void *))function(handle, "hooked_free");
	void *(*resize)(void *, size_t) =
		(void *(*)(void *, size_t))function(handle, "hooked_realloc");
	char *mem = map(2);

	watch(mem);
	ck_assert_int_eq(unmap(mem, PAGE), 0);
	must_have_heard();
	watch(mem + PAGE);
	ck_assert_int_eq(by_pointer(mem + PAGE, PAGE), 0);
	must_have_heard();
	if (!OWN_HEAP)
		return;
	watch(mem = big());
	release(mem);
	must_have_heard();
	watch(mem = big());
	ck_assert_ptr_nonnull(resize(mem, 64 * BIG));
	must_have_heard();
}

static inline void *load(const char *path)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	ck_assert_msg(handle, "%s", dlerror());
	return handle;
}

#endif

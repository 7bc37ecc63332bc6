/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glibc 2.26 to 2.41: two words stand in front of a block of memory. The second is its
 * size, with three flags in the lowest bits; if the second flag is set, the block is a
 * mapping of its own, and the first word is its distance from the mapping's begin. free
 * unmaps that mapping, realloc moves or unmaps it or leaves it as it is. Such blocks are
 * never kept for another malloc. If other versions put padding elsewhere, it is less than
 * a page, and a range means whole pages.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include "base/compiler.h"
#include "monitor/change.h"
#include "monitor/hooked.h"
#include "monitor/slots.h"

enum { FREE, CFREE, LIBC_FREE, REALLOC, LIBC_REALLOC, REALLOCARRAY, MALLOC_TRIM, CALLS };

static struct mrf_hook hooks[CALLS];
static atomic_bool libcs_own;

#define ORIG(call, type) ((type)atomic_load_explicit(&hooks[call].orig, memory_order_acquire))

#define IS_MMAPPED 2u
#define FLAGS 7u

/* A change that the allocator may make to a block. */
struct heap_change {
	unsigned place; /* of the announcement */
	char *end;	/* of the heap, before; NULL: does not matter */
};

/* Sanitizers do not let others look there; with them, it is not the C library's block. */
static const size_t *head_of(const void *mem)
{
#ifdef __aarch64__
	mem = (const void *)((uintptr_t)mem << 8 >> 8); /* without the tag */
#endif
	return (const size_t *)mem - 2;
}

static void begin_heap_change(struct heap_change *change, const void *mem)
{
	const size_t *head;

	*change = (struct heap_change){ .place = MRF_ANNOUNCE_NONE };
	if (!mem || !atomic_load_explicit(&libcs_own, memory_order_relaxed))
		return;
	head = head_of(mem);
	if (mrf_unlikely(head[1] & IS_MMAPPED))
		change->place = mrf_change_begin((const char *)head - head[0],
						 head[0] + (head[1] & ~(size_t)FLAGS));
	else if (mrf_change_matters())
		change->end = mrf_hook_map_break();
}

static void end_heap_change(const struct heap_change *change)
{
	char *end;

	if (change->place != MRF_ANNOUNCE_NONE)
		mrf_change_end(change->place);
	if (!change->end)
		return;
	end = mrf_hook_map_break();
	if (mrf_unlikely(end < change->end))
		mrf_change_was(end, (size_t)(change->end - end));
}

static void hook_free(void *mem)
{
	struct heap_change change;

	begin_heap_change(&change, mem);
	ORIG(FREE, void (*)(void *))(mem);
	end_heap_change(&change);
}

static void *hook_realloc(void *mem, size_t len)
{
	struct heap_change change;
	void *ret;

	begin_heap_change(&change, mem);
	ret = ORIG(REALLOC, void *(*)(void *, size_t))(mem, len);
	end_heap_change(&change);
	return ret;
}

static void *hook_reallocarray(void *mem, size_t n, size_t len)
{
	struct heap_change change;
	void *ret;

	begin_heap_change(&change, mem);
	ret = ORIG(REALLOCARRAY, void *(*)(void *, size_t, size_t))(mem, n, len);
	end_heap_change(&change);
	return ret;
}

/* Discards free pages in the middle of heaps, too. */
static int hook_malloc_trim(size_t pad)
{
	unsigned place = mrf_change_begin_all();
	int ret = ORIG(MALLOC_TRIM, int (*)(size_t))(pad);

	mrf_change_end(place);
	return ret;
}

static struct mrf_hook hooks[CALLS] = {
	[FREE] = { .name = "free", .hook = hook_free },
	[CFREE] = { .name = "cfree", .hook = hook_free },
	[LIBC_FREE] = { .name = "__libc_free", .hook = hook_free },
	[REALLOC] = { .name = "realloc", .hook = hook_realloc },
	[LIBC_REALLOC] = { .name = "__libc_realloc", .hook = hook_realloc },
	[REALLOCARRAY] = { .name = "reallocarray", .hook = hook_reallocarray },
	[MALLOC_TRIM] = { .name = "malloc_trim", .hook = hook_malloc_trim },
};

void mrf_hook_heap_add(void *libc)
{
	mrf_slots_add(hooks, CALLS);
	atomic_store(&libcs_own, hooks[FREE].orig == dlsym(libc, "free") &&
					 hooks[REALLOC].orig == dlsym(libc, "realloc"));
}

void mrf_hook_heap_keep(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, -1);
}

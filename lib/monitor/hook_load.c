/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen finds out who calls it, by its return address, to search the caller's own path
 * (DT_RUNPATH, $ORIGIN) for a name without a slash. So where that could matter the call is
 * passed on as it is, by a jump, and its caller's new objects are met when somebody asks
 * for a symbol of theirs. dlsym, too, wants to know its caller.
 *
 * dlclose takes away all segments of some objects, it does not say which. Meanwhile
 * nothing is watched between the first and the last of all objects but the executable.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include "base/compiler.h"
#include "monitor/announce.h"
#include "monitor/change.h"
#include "monitor/hook_load.h"
#include "monitor/slots.h"

/*
 * JUMPS stands before a function that ends in a jump to another, BY_JUMP before its
 * return. Without optimisation gcc makes no such jump, and these calls are not hooked:
 * new objects wait until something is watched.
 */
#if defined(__clang__)
#define JUMPS
#define BY_JUMP __attribute__((musttail))
#define CAN_JUMP 1
#else
#define JUMPS __attribute__((optimize("optimize-sibling-calls"), no_sanitize("thread")))
#define BY_JUMP
#ifdef __OPTIMIZE__
#define CAN_JUMP 1
#else
#define CAN_JUMP 0
#endif
#endif

enum { DLCLOSE, NEED_A_JUMP, DLOPEN = NEED_A_JUMP, DLMOPEN, DLSYM, DLVSYM, CALLS };

static struct mrf_hook hooks[CALLS];
static atomic_bool pending; /* objects may have been loaded that nobody has looked at */

#define ORIG(call, type) ((type)atomic_load_explicit(&hooks[call].orig, memory_order_acquire))

static void meet_new_objects(void)
{
	int err = errno;

	atomic_store(&pending, false);
	mrf_slots_fill();
	errno = err;
}

static void meet_pending(void)
{
	if (mrf_unlikely(atomic_load_explicit(&pending, memory_order_relaxed)))
		meet_new_objects();
}

/* Does it not matter who asks for this file? */
static bool same_for_all(const char *file)
{
	if (!file)
		return true;
	if (strchr(file, '$') || mrf_slots_rpath())
		return false;
	return strchr(file, '/') || !mrf_slots_runpath();
}

JUMPS static void *hook_dlopen(const char *file, int flags)
{
	void *(*orig)(const char *, int) = ORIG(DLOPEN, void *(*)(const char *, int));
	void *handle;

	if (!same_for_all(file)) {
		atomic_store(&pending, true);
		BY_JUMP return orig(file, flags);
	}
	handle = orig(file, flags);
	meet_new_objects();
	return handle;
}

JUMPS static void *hook_dlmopen(Lmid_t where, const char *file, int flags)
{
	void *(*orig)(Lmid_t, const char *, int) =
		ORIG(DLMOPEN, void *(*)(Lmid_t, const char *, int));

	atomic_store(&pending, true);
	BY_JUMP return orig(where, file, flags);
}

JUMPS static void *hook_dlsym(void *handle, const char *name)
{
	void *(*orig)(void *, const char *) = ORIG(DLSYM, void *(*)(void *, const char *));

	meet_pending();
	BY_JUMP return orig(handle, name);
}

JUMPS static void *hook_dlvsym(void *handle, const char *name, const char *version)
{
	void *(*orig)(void *, const char *, const char *) =
		ORIG(DLVSYM, void *(*)(void *, const char *, const char *));

	meet_pending();
	BY_JUMP return orig(handle, name, version);
}

/* --- unloading ------------------------------------------------------------------------ */

struct hull {
	uintptr_t start;
	uintptr_t end;
	bool first; /* the executable is still to come */
};

/* Neither goes away ever, and between the vDSO and the others lies the stack. */
static bool never_unloaded(const struct hull *hull, const struct dl_phdr_info *info)
{
	return hull->first || info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
}

static int add_to_hull(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct hull *hull = arg;
	unsigned i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum && !never_unloaded(hull, info); i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		hull->start = mrf_min(hull->start, start);
		hull->end = mrf_max(hull->end, start + segment->p_memsz);
	}
	hull->first = false;
	return 0;
}

static int tell_segments(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct hull *hull = arg;
	unsigned i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum && !never_unloaded(hull, info); i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD)
			mrf_change_tell((void *)(info->dlpi_addr + segment->p_vaddr),
					segment->p_memsz);
	}
	hull->first = false;
	return 0;
}

static unsigned begin_unload(void)
{
	struct hull hull = { UINTPTR_MAX, 0, true };
	unsigned place;

	dl_iterate_phdr(add_to_hull, &hull);
	if (hull.start >= hull.end)
		return MRF_ANNOUNCE_NONE;
	place = mrf_change_announce((void *)hull.start, hull.end - hull.start);
	if (mrf_change_matters()) {
		hull.first = true;
		dl_iterate_phdr(tell_segments, &hull);
	}
	return place;
}

static int hook_dlclose(void *handle)
{
	int (*orig)(void *) = ORIG(DLCLOSE, int (*)(void *));
	unsigned place = begin_unload();
	int ret = orig(handle);

	mrf_change_end(place);
	return ret;
}

static struct mrf_hook hooks[CALLS] = {
	[DLCLOSE] = { .name = "dlclose", .hook = hook_dlclose },
	[DLOPEN] = { .name = "dlopen", .hook = hook_dlopen },
	[DLMOPEN] = { .name = "dlmopen", .hook = hook_dlmopen },
	[DLSYM] = { .name = "dlsym", .hook = hook_dlsym },
	[DLVSYM] = { .name = "dlvsym", .hook = hook_dlvsym },
};

void mrf_hook_load_add(void)
{
	mrf_slots_add(hooks, CAN_JUMP ? CALLS : NEED_A_JUMP);
}

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
#include "base/gate.h"
#include "monitor/change.h"
#include "monitor/hooked.h"
#include "monitor/slots.h"

enum { DLOPEN, DLMOPEN, DLSYM, DLVSYM, DLCLOSE, CALLS };

static struct mrf_hook hooks[CALLS];
static atomic_bool pending; /* objects may have been loaded that nobody has looked at */

#define ORIG(call, type) ((type)atomic_load_explicit(&hooks[call].orig, memory_order_acquire))

static void meet_new_objects(void)
{
	int err = errno;

	atomic_store(&pending, false);
	mrf_slots_fill_now();
	errno = err;
}

static void meet_pending(void)
{
	if (mrf_unlikely(atomic_load_explicit(&pending, memory_order_relaxed)))
		meet_new_objects();
}

/* Is the caller of no importance for how this file is found? */
static bool same_for_all(const char *file)
{
	if (!file)
		return true;
	if (strchr(file, '$') || mrf_slots_rpath())
		return false;
	return strchr(file, '/') || !mrf_slots_runpath();
}

/* Opens a file that is found in the same way for every caller. */
static void *open_for_all(const char *file, int flags)
{
	void *(*orig)(const char *, int) = ORIG(DLOPEN, void *(*)(const char *, int));
	void *handle = orig(file, flags);

	meet_new_objects();
	return handle;
}

/* --- what jumps ----------------------------------------------------------------------- */

/*
 * Defines the hook NAME, which has up to three arguments: calls WAY with them and jumps,
 * as if nothing had happened, to the function that WAY has returned. No compiler promises
 * such a jump.
 */
#if defined(__x86_64__)
#define HOOK_BY_JUMP(name, way)                                                                 \
	__attribute__((visibility("hidden"))) void name(void);                                  \
	__asm__(".pushsection .text\n"                                                          \
		".hidden " #name "\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		".cfi_startproc\nendbr64\n"                                                     \
		"push %rdi\n.cfi_adjust_cfa_offset 8\n"                                         \
		"push %rsi\n.cfi_adjust_cfa_offset 8\n"                                         \
		"push %rdx\n.cfi_adjust_cfa_offset 8\n"                                         \
		"call " #way "\n"                                                               \
		"pop %rdx\n.cfi_adjust_cfa_offset -8\n"                                         \
		"pop %rsi\n.cfi_adjust_cfa_offset -8\n"                                         \
		"pop %rdi\n.cfi_adjust_cfa_offset -8\n"                                         \
		"jmp *%rax\n.cfi_endproc\n.size " #name ", .-" #name "\n.popsection")
#elif defined(__aarch64__)
#define HOOK_BY_JUMP(name, way)                                                                 \
	__attribute__((visibility("hidden"))) void name(void);                                  \
	__asm__(".pushsection .text\n"                                                          \
		".hidden " #name "\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" \
		".cfi_startproc\nhint #34\n"                                                    \
		"stp x29, x30, [sp, #-48]!\n.cfi_def_cfa_offset 48\n"                           \
		".cfi_offset 29, -48\n.cfi_offset 30, -40\n"                                    \
		"stp x0, x1, [sp, #16]\nstr x2, [sp, #32]\n"                                    \
		"bl " #way "\nmov x16, x0\n"                                                    \
		"ldp x0, x1, [sp, #16]\nldr x2, [sp, #32]\n"                                    \
		"ldp x29, x30, [sp], #48\n.cfi_def_cfa_offset 0\n"                              \
		".cfi_restore 29\n.cfi_restore 30\n"                                            \
		"br x16\n.cfi_endproc\n.size " #name ", .-" #name "\n.popsection")
#else
/* Nothing is hooked there: monitor/elf.h. */
#define HOOK_BY_JUMP(name, way) \
	static void name(void)  \
	{                       \
		(void)way;      \
	}                       \
	_Static_assert(sizeof(name) > 0, #name)
#endif

/* Called by code that the compiler does not see. */
#define SEEN_BY_ASM __attribute__((used, visibility("hidden")))

SEEN_BY_ASM void *mrf_way_of_dlopen(const char *file);
SEEN_BY_ASM void *mrf_way_of_dlmopen(void);
SEEN_BY_ASM void *mrf_way_of_dlsym(void);
SEEN_BY_ASM void *mrf_way_of_dlvsym(void);

void *mrf_way_of_dlopen(const char *file)
{
	if (same_for_all(file))
		return open_for_all;
	atomic_store(&pending, true);
	return ORIG(DLOPEN, void *);
}

void *mrf_way_of_dlmopen(void)
{
	atomic_store(&pending, true);
	return ORIG(DLMOPEN, void *);
}

void *mrf_way_of_dlsym(void)
{
	meet_pending();
	return ORIG(DLSYM, void *);
}

void *mrf_way_of_dlvsym(void)
{
	meet_pending();
	return ORIG(DLVSYM, void *);
}

HOOK_BY_JUMP(mrf_hook_dlopen, mrf_way_of_dlopen);
HOOK_BY_JUMP(mrf_hook_dlmopen, mrf_way_of_dlmopen);
HOOK_BY_JUMP(mrf_hook_dlsym, mrf_way_of_dlsym);
HOOK_BY_JUMP(mrf_hook_dlvsym, mrf_way_of_dlvsym);

/* --- unloading ------------------------------------------------------------------------ */

struct hull {
	uintptr_t start;
	uintptr_t end;
	bool first; /* the executable is still to come */
};

/* Neither of them ever goes away, and the stack lies between the vDSO and the others. */
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
	unsigned place = MRF_ANNOUNCE_NONE;

	mrf_gate_enter(MRF_GATE_LOADER);
	dl_iterate_phdr(add_to_hull, &hull);
	if (hull.start < hull.end)
		place = mrf_change_announce((void *)hull.start, hull.end - hull.start);
	if (place != MRF_ANNOUNCE_NONE && mrf_change_matters()) {
		hull.first = true;
		dl_iterate_phdr(tell_segments, &hull);
	}
	mrf_gate_leave(MRF_GATE_LOADER);
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
	[DLOPEN] = { .name = "dlopen", .hook = mrf_hook_dlopen },
	[DLMOPEN] = { .name = "dlmopen", .hook = mrf_hook_dlmopen },
	[DLSYM] = { .name = "dlsym", .hook = mrf_hook_dlsym },
	[DLVSYM] = { .name = "dlvsym", .hook = mrf_hook_dlvsym },
};

void mrf_hook_load_add(void)
{
	mrf_slots_add(hooks, CALLS);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of munmap, mmap, mremap, madvise, brk and shmat in the C library's code get
 * a jump (patch.h), as in UCX, Open MPI and libfabric. That is the only way to meet every
 * caller. Symbols that the library exported, or entries of the tables through which
 * objects call each other, miss what the C library does by its internal names (free,
 * realloc, malloc_trim, the arenas of malloc, stacks of threads). Wrappers of free and
 * realloc would not help: nobody outside knows what these unmap. A jump also meets the
 * calls of objects that are loaded later, and needs no place in the order of symbols.
 *
 * A hook costs a look into one cache line that threads seldom share. It runs under
 * the allocator's locks, in signal handlers, in children of fork: the one lock that it
 * takes (rank PIN) is the last of all, nobody allocates or frees under it, and signals
 * are blocked meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/page.h"
#include "monitor/announce.h"
#include "monitor/hooks.h"
#include "monitor/patch.h"
#include "monitor/uffd.h"

enum { MUNMAP, MMAP, MREMAP, MADVISE, BRK, SHMAT, CALLS };

static int hook_munmap(void *addr, size_t len);
static void *hook_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
static void *hook_mremap(void *addr, size_t len, size_t new_len, int flags, void *to);
static int hook_madvise(void *addr, size_t len, int advice);
static int hook_brk(void *addr);
static void *hook_shmat(int id, const void *addr, int flags);

static const struct {
	const char *name;
	void *hook;
} calls[CALLS] = {
	[MUNMAP] = { "munmap", hook_munmap }, [MMAP] = { "mmap", hook_mmap },
	[MREMAP] = { "mremap", hook_mremap }, [MADVISE] = { "madvise", hook_madvise },
	[BRK] = { "brk", hook_brk },	      [SHMAT] = { "shmat", hook_shmat },
};

static struct mrf_patch patches[CALLS]; /* admin; constant once installed is true */
static void *_Atomic origs[CALLS];	/* what the calls did before */
static pthread_mutex_t admin = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool installed;
static struct mrf_hooks_listener *_Atomic listeners[MRF_HOOKS_LISTENERS];

/* --- what every call does ---------------------------------------------------------- */

/*
 * An address that no call accepts, for calls that only test whether the hooks hear them.
 */
#define PROBE 1u
static atomic_uint heard;

static bool probed(unsigned call, const void *addr)
{
	if (mrf_likely((uintptr_t)addr != PROBE))
		return false;
	atomic_fetch_or(&heard, 1u << call);
	return true;
}

static void tell_listeners(uintptr_t start, uintptr_t end)
{
	struct mrf_hooks_listener *listener;
	unsigned i;

	for (i = 0; i < MRF_HOOKS_LISTENERS; i++) {
		listener = atomic_load_explicit(&listeners[i], memory_order_acquire);
		if (listener && atomic_load(&listener->armed))
			listener->changing(start, end);
	}
}

/* errno belongs to the call, which does not change it when it succeeds. */
static unsigned begin_change(const void *addr, size_t len)
{
	uintptr_t mask = mrf_page_size() - 1, start = (uintptr_t)addr & ~mask;
	uintptr_t end = (uintptr_t)addr + len;
	unsigned place;
	int err = errno;

	end = end < start || end > UINTPTR_MAX - mask ? UINTPTR_MAX : (end + mask) & ~mask;
	place = mrf_announce(start, end);
	tell_listeners(start, end);
	errno = err;
	return place;
}

static void end_change(unsigned place)
{
	mrf_announce_end(place);
}

/* --- the calls --------------------------------------------------------------------- */

#define ORIG(call, type) ((type)atomic_load_explicit(&origs[call], memory_order_acquire))

static int hook_munmap(void *addr, size_t len)
{
	int (*orig)(void *, size_t) = ORIG(MUNMAP, int (*)(void *, size_t));
	unsigned place;
	int ret;

	if (probed(MUNMAP, addr))
		return orig(addr, len);
	place = begin_change(addr, len);
	ret = orig(addr, len);
	end_change(place);
	return ret;
}

static void *hook_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *(*orig)(void *, size_t, int, int, int, off_t) =
		ORIG(MMAP, void *(*)(void *, size_t, int, int, int, off_t));
	unsigned place;
	void *ret;

	/* Any other takes room that is free. */
	if (!(flags & MAP_FIXED) || probed(MMAP, addr))
		return orig(addr, len, prot, flags, fd, offset);
	place = begin_change(addr, len);
	ret = orig(addr, len, prot, flags, fd, offset);
	end_change(place);
	return ret;
}

static void *hook_mremap(void *addr, size_t len, size_t new_len, int flags, void *to)
{
	void *(*orig)(void *, size_t, size_t, int, ...) =
		ORIG(MREMAP, void *(*)(void *, size_t, size_t, int, ...));
	unsigned from_place, to_place;
	bool over = flags & MREMAP_FIXED;
	void *ret;

	if (probed(MREMAP, addr))
		return orig(addr, len, new_len, flags, to);
	from_place = begin_change(addr, len);
	to_place = over ? begin_change(to, new_len) : MRF_ANNOUNCE_NONE;
	ret = orig(addr, len, new_len, flags, to);
	end_change(to_place);
	end_change(from_place);
	return ret;
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static bool takes_pages(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
	       advice == MADV_DONTNEED_LOCKED || advice == MADV_GUARD_INSTALL;
}

static int hook_madvise(void *addr, size_t len, int advice)
{
	int (*orig)(void *, size_t, int) = ORIG(MADVISE, int (*)(void *, size_t, int));
	unsigned place;
	int ret;

	if (!takes_pages(advice) || probed(MADVISE, addr))
		return orig(addr, len, advice);
	place = begin_change(addr, len);
	ret = orig(addr, len, advice);
	end_change(place);
	return ret;
}

static int hook_brk(void *addr)
{
	int (*orig)(void *) = ORIG(BRK, int (*)(void *));
	/* Not sbrk(0), which may ask here. */
	char *now = (char *)syscall(SYS_brk, NULL), *then = addr;
	unsigned place;
	int ret;

	if (probed(BRK, addr) || then >= now)
		return orig(addr);
	place = begin_change(then, (size_t)(now - then));
	ret = orig(addr);
	end_change(place);
	return ret;
}

static size_t segment_size(int id)
{
	struct shmid_ds ds;
	int err = errno;
	size_t size = shmctl(id, IPC_STAT, &ds) ? SIZE_MAX : ds.shm_segsz;

	errno = err;
	return size;
}

static void *hook_shmat(int id, const void *addr, int flags)
{
	void *(*orig)(int, const void *, int) = ORIG(SHMAT, void *(*)(int, const void *, int));
	unsigned place;
	void *ret;

	if (!(flags & SHM_REMAP) || probed(SHMAT, addr))
		return orig(id, addr, flags);
	place = begin_change(addr, segment_size(id));
	ret = orig(id, addr, flags);
	end_change(place);
	return ret;
}

/* --- putting them in ---------------------------------------------------------------- */

/*
 * Makes each call as a program does, in a way that changes nothing: an emulator that runs
 * a copy of the code, or a library in front of the C library, may keep the call from us.
 */
static int ask_all(void)
{
	void *probe = (void *)(uintptr_t)PROBE;
	size_t page = mrf_page_size();

	atomic_store(&heard, 0);
	(void)munmap(probe, page);
	(void)mmap(probe, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	(void)mremap(probe, page, page, 0);
	(void)madvise(probe, page, MADV_DONTNEED);
	(void)brk(probe);
	(void)shmat(-1, probe, SHM_REMAP);
	return atomic_load(&heard) == (1u << CALLS) - 1 ? 0 : -FI_EOPNOTSUPP;
}

static void take_out(unsigned n)
{
	while (n--)
		(void)mrf_patch_revert(&patches[n]);
}

static int put_in(void)
{
	unsigned i;
	int ret = 0;

	for (i = 0; !ret && i < CALLS; i++)
		ret = mrf_patch_apply(&patches[i]);
	if (ret)
		i--;
	else
		ret = ask_all();
	if (ret)
		take_out(i);
	return ret;
}

static int prepare_patches(void *libc, unsigned char *room)
{
	unsigned i;
	int ret;

	for (i = 0; i < CALLS; i++) {
		patches[i].function = dlsym(libc, calls[i].name);
		patches[i].hook = calls[i].hook;
		if (!patches[i].function)
			return -FI_EOPNOTSUPP;
		ret = mrf_patch_prepare(&patches[i], room + i * MRF_PATCH_ROOM);
		if (ret)
			return ret;
		atomic_store_explicit(&origs[i], patches[i].orig, memory_order_release);
	}
	return mrf_patch_seal(room);
}

/* The C library calls us from now on, so this library must not be unloaded. */
static void stay(void)
{
	Dl_info info;

	if (dladdr(&admin, &info))
		(void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/*
 * The C library advises on a thread's stack when the thread has ended for
 * ThreadSanitizer, which crashes if instrumented code runs then, and no call that goes by
 * way of ThreadSanitizer reaches the C library.
 */
#ifdef __SANITIZE_THREAD__
#define MRF_UNDER_TSAN true
#else
#define MRF_UNDER_TSAN false
#endif

static int install_hooks(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *room;
	int ret = -FI_ENOSYS;

	if (!libc || mrf_under_valgrind() || MRF_UNDER_TSAN)
		return ret;
	room = mrf_patch_room(dlsym(libc, "munmap"));
	if (!room)
		return ret;
	ret = prepare_patches(libc, room);
	if (!ret) {
		stay();
		ret = put_in();
	}
	return ret;
}

int mrf_hooks_listen(struct mrf_hooks_listener *listener)
{
	static bool tried;
	static int why;
	unsigned i;

	pthread_mutex_lock(&admin);
	if (!tried) {
		why = install_hooks();
		atomic_store_explicit(&installed, !why, memory_order_release);
	}
	tried = true;
	for (i = 0; i < MRF_HOOKS_LISTENERS && listeners[i] != listener; i++) {
		if (!listeners[i]) {
			listeners[i] = listener;
			break;
		}
	}
	pthread_mutex_unlock(&admin);
	return why;
}

bool mrf_hooks_in_force(void)
{
	unsigned i;

	if (!atomic_load_explicit(&installed, memory_order_acquire))
		return false;
	for (i = 0; i < CALLS; i++) {
		if (!mrf_patch_holds(&patches[i]))
			return false;
	}
	return true;
}

bool mrf_hooks_quiet(uintptr_t start, uintptr_t end)
{
	return !mrf_announced(start, end);
}

void mrf_hooks_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	admin = fresh;
	mrf_announce_clear();
}

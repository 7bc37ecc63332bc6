/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/known.h"
#include "base/page.h"
#include "monitor/change.h"
#include "monitor/hooked.h"
#include "monitor/slots.h"

enum {
	MUNMAP,
	MMAP,
	MMAP64,
	MREMAP,
	MADVISE,
	PROCESS_MADVISE,
	REMAP_FILE_PAGES,
	BRK,
	SBRK,
	SBRK_TOO,
	SHMAT,
	MPROTECT,
	PKEY_MPROTECT,
	CALLS
};

static struct mrf_hook hooks[CALLS];

#define ORIG(call, type) ((type)atomic_load_explicit(&hooks[call].orig, memory_order_acquire))

/*
 * An address that no call accepts, for calls that only test whether the hooks hear them.
 */
#define PROBE 1u
#define PROBED (1u << MUNMAP | 1u << MMAP | 1u << MREMAP | 1u << MADVISE | 1u << SHMAT)
static atomic_uint heard;

static bool probed(unsigned call, const void *addr)
{
	if (mrf_likely((uintptr_t)addr != PROBE))
		return false;
	atomic_fetch_or(&heard, 1u << call);
	return true;
}

/* --- mappings ------------------------------------------------------------------------ */

static int hook_munmap(void *addr, size_t len)
{
	int (*orig)(void *, size_t) = ORIG(MUNMAP, int (*)(void *, size_t));
	unsigned place;
	int ret;

	if (probed(MUNMAP, addr))
		return orig(addr, len);
	place = mrf_change_begin(addr, len);
	ret = orig(addr, len);
	mrf_change_end(place);
	return ret;
}

typedef void *mmap_call(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

/* Without MAP_FIXED the call takes free room. */
static void *map_pages(unsigned call, void *addr, size_t len, int prot, int flags, int fd,
		       off_t offset)
{
	mmap_call *orig = ORIG(call, mmap_call *);
	unsigned place;
	void *ret;

	if (!(flags & MAP_FIXED) || probed(MMAP, addr))
		return orig(addr, len, prot, flags, fd, offset);
	place = mrf_change_begin(addr, len);
	ret = orig(addr, len, prot, flags, fd, offset);
	mrf_change_end(place);
	return ret;
}

static void *hook_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map_pages(MMAP, addr, len, prot, flags, fd, offset);
}

static void *hook_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map_pages(MMAP64, addr, len, prot, flags, fd, offset);
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
	from_place = mrf_change_begin(addr, len);
	to_place = over ? mrf_change_begin(to, new_len) : MRF_ANNOUNCE_NONE;
	ret = orig(addr, len, new_len, flags, to);
	mrf_change_end(to_place);
	mrf_change_end(from_place);
	return ret;
}

static int hook_remap_file_pages(void *addr, size_t len, int prot, size_t pgoff, int flags)
{
	int (*orig)(void *, size_t, int, size_t, int) =
		ORIG(REMAP_FILE_PAGES, int (*)(void *, size_t, int, size_t, int));
	unsigned place = mrf_change_begin(addr, len);
	int ret = orig(addr, len, prot, pgoff, flags);

	mrf_change_end(place);
	return ret;
}

/* --- pages --------------------------------------------------------------------------- */

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
	place = mrf_change_begin(addr, len);
	ret = orig(addr, len, advice);
	mrf_change_end(place);
	return ret;
}

/*
 * Linux takes pages of the caller only, and only from 6.13 on. The ranges are not looked
 * at here: the kernel forgives a bad pointer to them.
 */
static ssize_t hook_process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
				    unsigned flags)
{
	ssize_t (*orig)(int, const struct iovec *, size_t, int, unsigned) =
		ORIG(PROCESS_MADVISE, ssize_t(*)(int, const struct iovec *, size_t, int, unsigned));
	unsigned place;
	ssize_t ret;

	if (!takes_pages(advice))
		return orig(pidfd, iov, n, advice, flags);
	place = mrf_change_begin_all();
	ret = orig(pidfd, iov, n, advice, flags);
	mrf_change_end(place);
	return ret;
}

static int hook_mprotect(void *addr, size_t len, int prot)
{
	int (*orig)(void *, size_t, int) = ORIG(MPROTECT, int (*)(void *, size_t, int));
	unsigned place = mrf_change_begin(addr, len);
	int ret = orig(addr, len, prot);

	mrf_change_end(place);
	return ret;
}

static int hook_pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
	int (*orig)(void *, size_t, int, int) =
		ORIG(PKEY_MPROTECT, int (*)(void *, size_t, int, int));
	unsigned place;
	int ret;

	/*
	 * With a key each thread's own register decides whether it may use the page, and that
	 * has no hook.
	 */
	if (pkey > 0)
		mrf_known_distrust();
	place = mrf_change_begin(addr, len);
	ret = orig(addr, len, prot, pkey);
	mrf_change_end(place);
	return ret;
}

/* --- the break ----------------------------------------------------------------------- */

static int hook_brk(void *addr)
{
	int (*orig)(void *) = ORIG(BRK, int (*)(void *));
	/* Not sbrk(0), which may ask here. */
	char *now = (char *)syscall(SYS_brk, NULL), *then = addr;
	unsigned place;
	int ret;

	if (then >= now)
		return orig(addr);
	place = mrf_change_begin(then, (size_t)(now - then));
	ret = orig(addr);
	mrf_change_end(place);
	return ret;
}

static void *hook_sbrk(intptr_t by)
{
	void *(*orig)(intptr_t) = ORIG(SBRK, void *(*)(intptr_t));
	unsigned place;
	void *ret;

	if (by >= 0)
		return orig(by);
	place = mrf_change_begin((char *)orig(0) + by, -(size_t)by);
	ret = orig(by);
	mrf_change_end(place);
	return ret;
}

char *mrf_hook_map_break(void)
{
	return ORIG(SBRK, void *(*)(intptr_t))(0);
}

/* --- shared segments ------------------------------------------------------------------ */

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
	place = mrf_change_begin(addr, segment_size(id));
	ret = orig(id, addr, flags);
	mrf_change_end(place);
	return ret;
}

/* --- all of them ---------------------------------------------------------------------- */

static struct mrf_hook hooks[CALLS] = {
	[MUNMAP] = { .name = "munmap", .hook = hook_munmap },
	[MMAP] = { .name = "mmap", .hook = hook_mmap },
	[MMAP64] = { .name = "mmap64", .hook = hook_mmap64 },
	[MREMAP] = { .name = "mremap", .hook = hook_mremap },
	[MADVISE] = { .name = "madvise", .hook = hook_madvise },
	[PROCESS_MADVISE] = { .name = "process_madvise", .hook = hook_process_madvise },
	[REMAP_FILE_PAGES] = { .name = "remap_file_pages", .hook = hook_remap_file_pages },
	[BRK] = { .name = "brk", .hook = hook_brk },
	[SBRK] = { .name = "sbrk", .hook = hook_sbrk },
	[SBRK_TOO] = { .name = "__sbrk", .hook = hook_sbrk },
	[SHMAT] = { .name = "shmat", .hook = hook_shmat },
	[MPROTECT] = { .name = "mprotect", .hook = hook_mprotect },
	[PKEY_MPROTECT] = { .name = "pkey_mprotect", .hook = hook_pkey_mprotect },
};

bool mrf_hook_map_add(void)
{
	mrf_slots_add(hooks, CALLS);
	return hooks[MUNMAP].orig && hooks[MMAP].orig && hooks[MREMAP].orig &&
	       hooks[MADVISE].orig && hooks[SBRK].orig && hooks[SHMAT].orig;
}

bool mrf_hook_map_heard(void)
{
	void *probe = (void *)(uintptr_t)PROBE;
	size_t page = mrf_page_size();

	atomic_store(&heard, 0);
	(void)munmap(probe, page);
	(void)mmap(probe, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	(void)mremap(probe, page, page, 0);
	(void)madvise(probe, page, MADV_DONTNEED);
	(void)shmat(-1, probe, SHM_REMAP);
	return atomic_load(&heard) == PROBED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hooks as one: installing, and what others ask of them. The hooked calls are in
 * hook_map.c, hook_heap.c and hook_load.c.
 *
 * A hook costs a look into one cache line that threads seldom share. It runs under the
 * allocator's locks, in signal handlers, in children of fork: the one lock that it takes
 * (rank PIN) is the last of all, nobody allocates or frees under it, and signals are
 * blocked meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/renew.h"
#include "monitor/change.h"
#include "monitor/hooked.h"
#include "monitor/hooks.h"
#include "monitor/slots.h"
#include "monitor/uffd.h"

static struct mrf_static_lock admin = MRF_STATIC_LOCK(NULL);
static atomic_bool installed;
static atomic_bool found;  /* the originals were looked for */
static atomic_int lacking; /* then: 0, or why the hooks cannot be installed */

/* The program calls us from now on, so this library must not be unloaded. */
static void stay(void)
{
	Dl_info info;

	if (dladdr(&admin, &info))
		(void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/*
 * Valgrind puts an allocator of its own in the place of the C library's, where nobody
 * sees it, so that what stands in front of a block means something else. It also runs one
 * thread at a time, and a thread that waits in a hook for another may wait for ever.
 */
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN true /* has allocator, dlopen and threads of its own: tried, and it hangs */
#else
#define UNDER_TSAN false
#endif

static int find_originals(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	if (!libc || mrf_under_valgrind() || UNDER_TSAN)
		return -FI_ENOSYS;
	if (!mrf_hook_map_add())
		return -FI_EOPNOTSUPP;
	mrf_hook_heap_add(libc);
	mrf_hook_load_add();
	stay();
	return 0;
}

/* Several threads may do this at once, and find the same. */
void mrf_hooks_find(void)
{
	if (mrf_likely(atomic_load(&found)))
		return;
	atomic_store(&lacking, find_originals());
	atomic_store(&found, true);
}

static int install_hooks(void)
{
	int ret = atomic_load(&lacking);

	if (ret)
		return ret;
	mrf_slots_fill();
	if (mrf_hook_map_heard()) {
		mrf_known_trust(mrf_hooks_in_force, mrf_hooks_refresh);
		return 0;
	}
	mrf_slots_empty();
	return -FI_EOPNOTSUPP;
}

int mrf_hooks_listen(struct mrf_hooks_listener *listener)
{
	static bool tried;
	static int why;
	int ret;

	mrf_hooks_find();
	mrf_static_take(&admin);
	if (!tried) {
		why = install_hooks();
		atomic_store_explicit(&installed, !why, memory_order_release);
	}
	tried = true;
	ret = why;
	if (!mrf_change_listen(listener))
		ret = -FI_ENOSPC;
	mrf_static_release(&admin);
	return ret;
}

bool mrf_hooks_in_force(void)
{
	return atomic_load_explicit(&installed, memory_order_acquire) && mrf_slots_hold();
}

void mrf_hooks_refresh(void)
{
	if (atomic_load_explicit(&installed, memory_order_acquire))
		mrf_slots_fill();
}

bool mrf_hooks_quiet(uintptr_t start, uintptr_t end)
{
	return !mrf_announced(start, end);
}

void mrf_hooks_keep_heap(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, mrf_hook_heap_keep);
}

void mrf_hooks_in_child(void)
{
	mrf_slots_in_child();
	mrf_announce_clear();
	mrf_known_in_child();
}

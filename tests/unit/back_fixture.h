/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking for regions that are pinned on demand, as the agent does: shared by t_back,
 * t_refresh, t_enable and t_mr_state.
 */
#ifndef BACK_FIXTURE_H
#define BACK_FIXTURE_H

#include <sys/mman.h>
#include "base/param.h"
#include "mr/demand/backs.h"
#include "mr/demand/pin.h"
#include "mr_fixture.h"

#define KEY 7
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define WINDOW MRF_PIN_WINDOW

static struct mrf_mr_lease lease;
static struct mrf_mr_view view;
static atomic_uint told; /* calls of space->dropped */

static inline void tell(void *arg)
{
	(void)arg;
	atomic_fetch_add(&told, 1);
}

/* Moves mem to where all of it is in one window. */
static inline void align_mem(void)
{
	char *room = mmap(NULL, 2 * WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start = (char *)(((uintptr_t)room + WINDOW - 1) & ~(WINDOW - 1ul));

	ck_assert_ptr_ne(room, MAP_FAILED);
	munmap(mem, 64 * PAGE);
	mem = mmap(start, 64 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(mem, start);
	munmap(room, (size_t)(start - room));
	start += 64 * PAGE;
	munmap(start, (size_t)(room + 2 * WINDOW - start));
}

/* With the monitor that there is, and a fake kernel that looks at the memory. */
static inline void back_open(uint64_t mode)
{
	unsetenv("FI_MR_CACHE_MONITOR");
	mrf_env_reload();
	env_open(mode);
	align_mem();
	fake_verbs.check_memory = true;
	atomic_store(&told, 0);
	env.space.dropped = tell;
	mrf_mr_lease_init(&lease);
}

static inline void back_close(void)
{
	mrf_mr_lease_end(&lease);
	env_close();
}

static inline void use_no_monitor(void)
{
	setenv("FI_MR_CACHE_MONITOR", "disabled", 1);
	mrf_env_reload();
}

/*
 * What the monitor's thread wrote before the kernel let this one go on; race detectors
 * do not know of that.
 */
static inline void settle(void)
{
	mrf_monitor_lock();
	mrf_monitor_unlock();
}

/* Pins are kept; else each access is leased, here always or in this environment. */
static inline bool keeps(void)
{
	return env.space.mode & FI_MR_MMU_NOTIFY || mrf_mr_backs_monitored(env.space.backs);
}

static inline enum mrf_mr_status reach(uint64_t key, uint64_t pos, uint64_t len)
{
	struct mrf_mr_query ask = { .key = key, .addr = pos, .len = len };

	memset(&view, 0xee, sizeof(view));
	library_enter();
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	library_leave();
	return view.status;
}

/* The bytes from pos on that the answer's segments reach. */
static inline uint64_t reached(uint64_t pos)
{
	uint64_t at = pos;
	unsigned i;

	for (i = 0; i < view.nseg; i++) {
		if (view.seg[i].addr > at || at - view.seg[i].addr >= view.seg[i].len)
			break;
		at = view.seg[i].addr + view.seg[i].len;
	}
	return at - pos;
}

static inline void must_reach(uint64_t key, uint64_t pos, uint64_t len)
{
	ck_assert_int_eq(reach(key, pos, len), MRF_MR_OK);
	ck_assert(!view.complete);
	ck_assert_uint_ge(reached(pos), len);
}

/* What the kernel would do with a byte at pos, as a peer that was answered reaches it. */
static inline void *byte_at(uint64_t pos)
{
	const struct fake_mr *mr;
	uint64_t iova;
	unsigned i;

	for (i = 0; i < view.nseg; i++) {
		if (pos < view.seg[i].addr || pos - view.seg[i].addr >= view.seg[i].len)
			continue;
		mr = fake_verbs_find(view.seg[i].rkey);
		ck_assert_ptr_nonnull(mr);
		iova = view.seg[i].iova + (pos - view.seg[i].addr);
		ck_assert_uint_ge(iova, mr->iova);
		ck_assert_uint_lt(iova - mr->iova, mr->mr.length);
		return (char *)mr->mr.addr + (iova - mr->iova);
	}
	return NULL;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock.h"
#include "base/page.h"
#include "base/compiler.h"
#include "base/iov.h"
#include "base/maps.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

size_t mrf_page_size(void)
{
	static size_t size;
	size_t s = __atomic_load_n(&size, __ATOMIC_RELAXED);

	if (mrf_unlikely(!s)) {
		s = (size_t)sysconf(_SC_PAGESIZE);
		__atomic_store_n(&size, s, __ATOMIC_RELAXED);
	}
	return s;
}

/* --- ranges ----------------------------------------------------------------------- */

enum trouble {
	TROUBLE_NONE,
	TROUBLE_UNMAPPED,
	TROUBLE_NO_RIGHT,
	TROUBLE_READ_ONLY,
	TROUBLE_RDMA,
	TROUBLE_SHARED /* not wrong in itself: see trouble_of */
};

static const char *const trouble_text[] = {
	[TROUBLE_UNMAPPED] = "are not mapped",
	[TROUBLE_NO_RIGHT] = "are mapped without any right",
	[TROUBLE_READ_ONLY] = "are mapped read-only",
	[TROUBLE_RDMA] = "are a queue of an RDMA device",
	[TROUBLE_SHARED] = "are a read-only shared mapping, which some kernels do not "
			   "pin even for reading",
};

/* The first stretch of one kind of trouble in [addr, end). */
struct stretch {
	enum trouble trouble;
	uint64_t from;
	uint64_t to; /* exclusive */
};

static enum trouble trouble_of(const struct mrf_mapping *map, bool write)
{
	if (map->rdma)
		return TROUBLE_RDMA;
	if (map->perms[0] != 'r' && map->perms[1] != 'w')
		return TROUBLE_NO_RIGHT;
	if (map->perms[1] == 'w')
		return TROUBLE_NONE;
	if (write)
		return TROUBLE_READ_ONLY;
	return map->perms[3] == 's' ? TROUBLE_SHARED : TROUBLE_NONE;
}

/*
 * Notes the piece [from, to). A worse trouble that is found later replaces a shared
 * mapping, which not every kernel refuses. False when the rest need not be looked at.
 */
static bool stretch_note(struct stretch *s, enum trouble trouble, uint64_t from, uint64_t to)
{
	if (from >= to)
		return true;
	if (s->trouble == trouble && s->to == from) {
		s->to = to;
		return true;
	}
	if (s->trouble != TROUBLE_NONE && s->trouble != TROUBLE_SHARED)
		return false;
	if (trouble == TROUBLE_NONE || trouble == s->trouble)
		return true;
	*s = (struct stretch){ .trouble = trouble, .from = from, .to = to };
	return true;
}

static void find_trouble(FILE *maps, uint64_t addr, uint64_t end, bool write, struct stretch *s)
{
	uint64_t at = addr; /* everything below it is looked at */
	struct mrf_mapping map;

	while (at < end && mrf_maps_next(maps, &map)) {
		if (map.end <= at)
			continue;
		if (!stretch_note(s, TROUBLE_UNMAPPED, at, mrf_min(map.start, end)))
			return;
		if (map.start >= end)
			return;
		at = mrf_max(at, map.start);
		if (!stretch_note(s, trouble_of(&map, write), at, mrf_min(map.end, end)))
			return;
		at = map.end;
	}
	stretch_note(s, TROUBLE_UNMAPPED, at, end);
}

void mrf_page_explain(const void *addr, size_t len, bool write, char *buf, size_t buflen)
{
	uint64_t base = (uintptr_t)addr, end;
	struct stretch s = { .trouble = TROUBLE_NONE };
	FILE *maps = mrf_maps_open();

	if (!maps) {
		snprintf(buf, buflen, "its mapping cannot be looked up: %m");
		return;
	}
	end = mrf_range_ok(base, len) ? base + len : UINT64_MAX;
	find_trouble(maps, base, end, write, &s);
	fclose(maps);
	if (s.trouble == TROUBLE_NONE)
		snprintf(buf, buflen, "all of it is mapped");
	else
		snprintf(buf, buflen, "bytes %" PRIu64 "..%" PRIu64 " of it %s", s.from - base,
			 s.to - 1 - base, trouble_text[s.trouble]);
}

/* --- locked memory ----------------------------------------------------------------- */

void mrf_page_memlock_read(struct mrf_page_memlock *lock)
{
	FILE *status = fopen("/proc/self/status", "re");
	struct rlimit limit;
	uint64_t caps = 0;
	char line[256];

	mrf_slow_call();
	memset(lock, 0, sizeof(*lock));
	lock->limit = UINT64_MAX;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		lock->limit = limit.rlim_cur;
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmPin: %" SCNu64, &lock->used) == 1)
			lock->used *= 1024;
		sscanf(line, "CapEff: %" SCNx64, &caps);
	}
	if (status)
		fclose(status);
	lock->exempt = caps & 1ull << 14; /* CAP_IPC_LOCK */
}

void mrf_page_memlock_text(const struct mrf_page_memlock *lock, size_t len, char *buf,
			   size_t buflen)
{
	uint64_t page = mrf_page_size(), need = len;

	if (mrf_range_ok(need, page - 1))
		need = (need + page - 1) / page * page;
	if (lock->limit == UINT64_MAX || lock->exempt)
		snprintf(buf, buflen,
			 "locked memory is not limited here (%" PRIu64
			 " bytes are in use), so memory ran out or another limit was "
			 "reached",
			 lock->used);
	else if (lock->used <= lock->limit && need <= lock->limit - lock->used)
		snprintf(buf, buflen,
			 "the locked-memory limit (ulimit -l) of %" PRIu64 " bytes, %" PRIu64
			 " of them in use, leaves room for it, so "
			 "memory ran out or another limit was reached",
			 lock->limit, lock->used);
	else
		snprintf(buf, buflen,
			 "the locked-memory limit (ulimit -l) is %" PRIu64 " bytes, %" PRIu64
			 " of them are in use and %" PRIu64 " more are needed",
			 lock->limit, lock->used, need);
}

void mrf_page_explain_memlock(size_t len, char *buf, size_t buflen)
{
	struct mrf_page_memlock lock;

	mrf_page_memlock_read(&lock);
	mrf_page_memlock_text(&lock, len, buf, buflen);
}

/* Headers before Linux 5.14 do not have them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int mrf_page_fault_in(uint64_t addr, bool write)
{
	size_t page = mrf_page_size();
	void *start = (void *)(uintptr_t)(addr & ~(uint64_t)(page - 1));

	mrf_slow_call();
	return madvise(start, page, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ? -FI_EFAULT
										      : 0;
}

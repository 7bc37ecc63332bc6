/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock.h"
#include "base/page.h"
#include "base/compiler.h"
#include "base/iov.h"
#include "base/maps.h"
#include "base/proc.h"
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
	TROUBLE_SPECIAL,
	TROUBLE_HUGE,
	TROUBLE_FILE,
	TROUBLE_ABSENT,
	/* Not wrong on every kernel. */
	TROUBLE_WRITE_ONLY,
	TROUBLE_SHARED
};

static const char *const trouble_text[] = {
	[TROUBLE_UNMAPPED] = "are not mapped",
	[TROUBLE_NO_RIGHT] = "are mapped without any right",
	[TROUBLE_READ_ONLY] = "are mapped read-only",
	[TROUBLE_RDMA] = "are a queue of an RDMA device",
	[TROUBLE_SPECIAL] = "are device or kernel memory, which is never pinned",
	[TROUBLE_HUGE] = "need a huge page, and none is free",
	[TROUBLE_FILE] = "are past the end of the mapped file",
	[TROUBLE_ABSENT] = "are mapped, but the kernel has no page for them",
	[TROUBLE_WRITE_ONLY] = "are mapped write-only, which some kernels do not pin for reading",
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
		return write || map->perms[0] == 'r' ? TROUBLE_NONE : TROUBLE_WRITE_ONLY;
	if (write)
		return TROUBLE_READ_ONLY;
	return map->perms[3] == 's' ? TROUBLE_SHARED : TROUBLE_NONE;
}

static bool mild(enum trouble trouble)
{
	return trouble == TROUBLE_NONE || trouble >= TROUBLE_WRITE_ONLY;
}

/*
 * Notes the piece [from, to). A worse trouble that is found later replaces one that not
 * every kernel minds. False when the rest need not be looked at.
 */
static bool stretch_note(struct stretch *s, enum trouble trouble, uint64_t from, uint64_t to)
{
	if (from >= to)
		return true;
	if (s->trouble == trouble && s->to == from) {
		s->to = to;
		return true;
	}
	if (!mild(s->trouble))
		return false;
	if (trouble == TROUBLE_NONE || (mild(trouble) && s->trouble != TROUBLE_NONE))
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

/* Why the page at addr cannot be brought in, by its mapping; *end: not beyond that. */
static enum trouble why_absent(uint64_t addr, uint64_t *end)
{
	FILE *smaps = fopen(MRF_PROC_SELF "/smaps", "re");
	enum trouble trouble = TROUBLE_ABSENT;
	uint64_t from, to, inode;
	bool here = false;
	char line[512];

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx %*s %*x %*x:%*x %lu", &from, &to, &inode) == 3) {
			here = from <= addr && addr < to;
			if (here)
				*end = mrf_min(*end, to);
			if (here && inode)
				trouble = TROUBLE_FILE;
		} else if (here && !strncmp(line, "VmFlags:", 8)) {
			if (strstr(line, " ht"))
				trouble = TROUBLE_HUGE;
			if (strstr(line, " io") || strstr(line, " pf"))
				trouble = TROUBLE_SPECIAL;
			break;
		}
	}
	if (smaps)
		fclose(smaps);
	return trouble;
}

/*
 * Finds pages that are mapped and have no memory behind them, which the mappings do not show.
 */
static void find_absent(uint64_t addr, uint64_t end, bool write, struct stretch *s)
{
	uint64_t page = mrf_page_size(), at = addr;

	while (at < end && !mrf_page_fault_in(at, write))
		at = (at | (page - 1)) + 1;
	if (at >= end)
		return;
	s->from = at;
	s->to = end;
	s->trouble = why_absent(at, &s->to);
}

bool mrf_page_explain(const void *addr, size_t len, bool write, char *buf, size_t buflen)
{
	uint64_t base = (uintptr_t)addr, end;
	struct stretch s = { .trouble = TROUBLE_NONE };
	FILE *maps = mrf_maps_open();

	if (!maps) {
		snprintf(buf, buflen, "its mapping cannot be looked up: %m");
		return true;
	}
	end = mrf_range_ok(base, len) ? base + len : UINT64_MAX;
	find_trouble(maps, base, end, write, &s);
	fclose(maps);
	if (s.trouble == TROUBLE_NONE || s.trouble == TROUBLE_SHARED)
		find_absent(base, end, write, &s);
	if (s.trouble == TROUBLE_NONE)
		snprintf(buf, buflen, "all of it is mapped");
	else
		snprintf(buf, buflen, "bytes %lu..%lu of it %s", s.from - base, s.to - 1 - base,
			 trouble_text[s.trouble]);
	return s.trouble != TROUBLE_NONE;
}

/* --- locked memory ----------------------------------------------------------------- */

void mrf_page_memlock_read(struct mrf_page_memlock *lock)
{
	FILE *status = fopen(MRF_PROC_SELF "/status", "re");
	struct rlimit limit;
	uint64_t caps = 0;
	char line[256];

	mrf_slow_call();
	memset(lock, 0, sizeof(*lock));
	lock->limit = UINT64_MAX;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		lock->limit = limit.rlim_cur;
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmPin: %lu", &lock->used) == 1)
			lock->used *= 1024;
		sscanf(line, "CapEff: %lx", &caps);
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
			 "locked memory is not limited here (%lu bytes are in use), so memory "
			 "ran out or another limit was reached",
			 lock->used);
	else if (lock->used <= lock->limit && need <= lock->limit - lock->used)
		snprintf(buf, buflen,
			 "the locked-memory limit (ulimit -l) of %lu bytes, %lu of them in "
			 "use, leaves room for it, so memory ran out or another limit was reached",
			 lock->limit, lock->used);
	else
		snprintf(buf, buflen,
			 "the locked-memory limit (ulimit -l) is %lu bytes, %lu of them are in "
			 "use and %lu more are needed",
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

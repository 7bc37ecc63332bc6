/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region with FI_RMA_PMEM consists of shared, writable mappings of regular files that are not
 * removed and not of tmpfs, hugetlbfs or memfd, and lies inside these files, because bytes
 * behind the end of a file, even in its last page, do not belong to it. /proc/self/maps, stat
 * and statfs show that.
 *
 * Flushing is MADV_POPULATE_WRITE and msync(MS_SYNC). A device's writes leave no trace in the
 * page tables, and without the former msync(2) writes nothing: tests/runner/t_commit.sh shows
 * that. Kernels from about 6.5 on, 6.12 among those tested, do not pin shared file mappings for
 * writing (FOLL_LONGTERM): there registering is refused with its reason.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/maps.h"
#include "base/page.h"
#include "contract/budget.h"
#include "mr/filemem.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* --- what memory it is ------------------------------------------------------------ */

/*
 * A newline is "\012" in /proc's paths, and nothing else is changed there: not even a
 * backslash, so a name that has these four characters itself is taken for another.
 */
static void unescape(char *path)
{
	static const char newline[] = "\\012";
	size_t len = sizeof(newline) - 1;
	char *at;

	for (at = path; (at = strstr(at, newline)); at++) {
		*at = '\n';
		memmove(at + 1, at + len, strlen(at + len) + 1);
	}
}

/* end: of the bytes, in the file. */
static const char *why_not_file(char *path, uint64_t end)
{
	struct statfs fs;
	struct stat st;

	path[strcspn(path, "\n")] = '\0';
	unescape(path);
	if (*path != '/')
		return "belongs to no file";
	if (stat(path, &st) || statfs(path, &fs))
		return "belongs to a file that was removed, or to none";
	if (!S_ISREG(st.st_mode))
		return "does not belong to a regular file";
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC)
		return "belongs to a file that is kept in memory only";
	return end > (uint64_t)st.st_size ? "passes the end of its file" : NULL;
}

static const char *why_not_line(const char *perms, char *path, uint64_t end)
{
	if (perms[3] != 's')
		return "is not a shared mapping";
	if (perms[1] != 'w')
		return "is not mapped for writing";
	return why_not_file(path, end);
}

static const char not_to_be_known[] = "cannot be looked up in /proc/self/maps";

static const char *look_at_maps(FILE *maps, uint64_t addr, uint64_t end, char **line, int *err)
{
	size_t room = 0;

	while (addr < end && (errno = 0, getline(line, &room, maps)) > 0) {
		uint64_t from, to, offset;
		const char *why;
		char perms[5];
		int path = 0;

		if (sscanf(*line, "%lx-%lx %4s %lx %*s %*s %n", &from, &to, perms, &offset, &path) <
			    4 ||
		    to <= addr)
			continue;
		if (from > addr)
			return "is not mapped";
		why = why_not_line(perms, *line + path, offset + mrf_min(to, end) - from);
		if (why)
			return why;
		addr = to;
	}
	if (addr < end && errno) {
		*err = errno;
		return not_to_be_known;
	}
	return addr < end ? "is not mapped" : NULL;
}

const char *mrf_pmem_why_not(uint64_t addr, uint64_t len, int *err)
{
	FILE *maps = mrf_maps_open();
	char *line = NULL;
	const char *why;

	*err = 0;
	if (!maps) {
		*err = errno;
		return not_to_be_known;
	}
	why = len ? look_at_maps(maps, addr, addr + len, &line, err) : NULL;
	free(line);
	fclose(maps);
	return why;
}

/* --- flushing --------------------------------------------------------------------- */

/* A thread that has slept long may keep another from the processor until it sleeps again. */
static void rest_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL);
}

/*
 * The device's writes leave no trace in the page tables. Faulting the pages in for writing
 * makes them dirty, and so the file system writes them. That takes the processor, not the
 * storage, up to 1 us a page.
 */
static int make_dirty(uint8_t *start, size_t size)
{
	size_t at, part;

	for (at = 0; at < size; at += part) {
		part = mrf_min(size - at, MRF_FLUSH_BURST);
		if (madvise(start + at, part, MADV_POPULATE_WRITE))
			return errno;
		if (at + part < size)
			rest_briefly();
	}
	return 0;
}

int mrf_pmem_flush(uint64_t addr, uint64_t len)
{
	uint64_t mask = mrf_page_size() - 1, from = addr & ~mask;
	void *start = (void *)(uintptr_t)from;
	size_t size = (addr + len + mask - from) & ~mask;
	int err;

	mrf_slow_call();
	err = make_dirty(start, size);
	if (err)
		return err;
	return msync(start, size, MS_SYNC) ? errno : 0;
}

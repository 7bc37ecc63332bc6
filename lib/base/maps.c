/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/maps.h"
#include "base/proc.h"
#include "base/renew.h"

#define PATH MRF_PROC_SELF "/maps"
#define RDMA_FILES "/dev/infiniband/"

/* --- the file --------------------------------------------------------------------- */

static int kept = -1;
static unsigned keepers;
static off_t kept_at; /* how far it is read */

/* The descriptor is of the parent's maps. */
static void maps_in_child(void)
{
	if (kept >= 0)
		close(kept);
	kept = -1;
	keepers = 0;
}

/* While the kept one is read, too. */
static struct mrf_static_lock lock = MRF_STATIC_LOCK(maps_in_child);

/*
 * The process's own file lasts longest, and still shows its mappings when main() has ended since. The
 * thread's own, which is what there is if it has ended before, ends with the thread.
 */
static int open_to_keep(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char first;

	if (fd >= 0 && pread(fd, &first, 1, 0) != 1) {
		close(fd);
		fd = open(PATH, O_RDONLY | O_CLOEXEC);
	}
	return mrf_fd_high(fd);
}

void mrf_maps_keep(void)
{
	mrf_static_take(&lock);
	if (!keepers++)
		kept = open_to_keep();
	mrf_static_release(&lock);
}

void mrf_maps_let_go(void)
{
	mrf_static_take(&lock);
	if (!--keepers && kept >= 0) {
		close(kept);
		kept = -1;
	}
	mrf_static_release(&lock);
}

static ssize_t kept_read(void *cookie, char *buf, size_t len)
{
	ssize_t n = pread(kept, buf, len, kept_at);

	(void)cookie;
	kept_at += n > 0 ? n : 0;
	return n;
}

static int kept_end(void *cookie)
{
	(void)cookie;
	mrf_static_release(&lock);
	return 0;
}

/* The kernel continues at the same line only if there is one reader. */
static FILE *kept_open(void)
{
	static const cookie_io_functions_t calls = { .read = kept_read, .close = kept_end };
	FILE *file = NULL;

	mrf_static_take(&lock);
	kept_at = 0;
	if (kept >= 0)
		file = fopencookie(NULL, "r", calls);
	if (!file)
		mrf_static_release(&lock);
	return file;
}

FILE *mrf_maps_open(void)
{
	FILE *file = fopen(PATH, "re");
	int err = errno;

	mrf_slow_call();
	if (!file)
		file = kept_open();
	if (!file)
		errno = err;
	return file;
}

/* --- one line --------------------------------------------------------------------- */

/* Reads the rest of a line: does it begin with text, apart from blanks? */
static bool rest_begins(FILE *maps, const char *text)
{
	int c = getc(maps);

	while (c == ' ')
		c = getc(maps);
	while (*text && c == *text) {
		text++;
		c = getc(maps);
	}
	while (c != '\n' && c != EOF)
		c = getc(maps);
	return !*text;
}

bool mrf_maps_next(FILE *maps, struct mrf_mapping *mapping)
{
	int n = fscanf(maps, "%lx-%lx %4s %*x %*x:%*x %lu", &mapping->start, &mapping->end,
		       mapping->perms, &mapping->inode);

	mapping->rdma = rest_begins(maps, RDMA_FILES);
	return n == 4;
}

bool mrf_maps_pinnable(const struct mrf_mapping *mapping, bool write)
{
	const char *perms = mapping->perms;

	if (mapping->rdma)
		return false;
	return write ? perms[1] == 'w' : perms[0] == 'r' || perms[1] == 'w';
}

bool mrf_maps_private(const struct mrf_mapping *mapping)
{
	return !mapping->inode && mapping->perms[3] == 'p';
}

/* --- one mapping ------------------------------------------------------------------- */

/* Of linux/fs.h from Linux 6.11 on. */
struct query {
	uint64_t size;
	uint64_t what; /* bits of enum query_bit */
	uint64_t addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t major, minor;
	uint32_t name_size, build_id_size; /* in: room; out: with the final 0 */
	uint64_t name_addr, build_id_addr;
};

enum query_bit {
	QUERY_READABLE = 1 << 0,
	QUERY_WRITABLE = 1 << 1,
	QUERY_EXECUTABLE = 1 << 2,
	QUERY_SHARED = 1 << 3,
	QUERY_OR_NEXT = 1 << 4 /* the mapping with the address, or the next one above it */
};

#define QUERY_CALL _IOWR('f', 17, struct query)

static void take_query(const struct query *query, const char *name, struct mrf_mapping *mapping)
{
	*mapping = (struct mrf_mapping){
		.start = query->start,
		.end = query->end,
		.perms = { query->flags & QUERY_READABLE ? 'r' : '-',
			   query->flags & QUERY_WRITABLE ? 'w' : '-',
			   query->flags & QUERY_EXECUTABLE ? 'x' : '-',
			   query->flags & QUERY_SHARED ? 's' : 'p' },
		.inode = query->inode,
		.rdma = query->name_size && !strncmp(name, RDMA_FILES, strlen(RDMA_FILES)),
	};
}

int mrf_maps_query(uint64_t addr, struct mrf_mapping *mapping)
{
	static atomic_bool unknown;
	char name[PATH_MAX];
	struct query query = { .size = sizeof(query),
			       .what = QUERY_OR_NEXT,
			       .addr = addr,
			       .name_size = sizeof(name),
			       .name_addr = (uintptr_t)name };
	int ret = -ENOSYS;

	/* valgrind does not know that the kernel writes there. */
	memset(name, 0, sizeof(RDMA_FILES));
	if (atomic_load_explicit(&unknown, memory_order_relaxed))
		return ret;
	mrf_static_take(&lock);
	if (kept >= 0)
		ret = ioctl(kept, QUERY_CALL, &query) ? -errno : 0;
	mrf_static_release(&lock);
	if (ret == -ENOTTY) {
		atomic_store(&unknown, true);
		return -ENOSYS;
	}
	if (!ret)
		take_query(&query, name, mapping);
	return ret;
}

/* --- a look ----------------------------------------------------------------------- */

static int append_mapping(struct mrf_maps *maps, const struct mrf_mapping *mapping)
{
	struct mrf_mapping *more;
	unsigned max;

	if (maps->count == maps->max) {
		max = maps->max ? 2 * maps->max : 16;
		more = realloc(maps->mapping, max * sizeof(*more));
		if (!more)
			return -FI_ENOMEM;
		maps->mapping = more;
		maps->max = max;
	}
	maps->mapping[maps->count++] = *mapping;
	return 0;
}

static unsigned lines_left(FILE *file)
{
	unsigned n = 0;
	int c;

	while ((c = getc_unlocked(file)) != EOF)
		n += c == '\n';
	return n;
}

int mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end)
{
	FILE *file = mrf_maps_open();
	struct mrf_mapping mapping = { 0 };
	int ret = 0;

	maps->count = 0;
	if (!file)
		return -errno;
	while (!ret && mapping.start < end && mrf_maps_next(file, &mapping)) {
		if (mapping.end > start && mapping.start < end)
			ret = append_mapping(maps, &mapping);
	}
	fclose(file);
	return ret;
}

bool mrf_maps_all_private(uint64_t start, uint64_t end)
{
	const struct mrf_mapping *mapping;
	struct mrf_maps maps = { 0 };

	if (mrf_maps_look(&maps, start, end))
		end = UINT64_MAX;
	while (start < end) {
		mapping = mrf_maps_at(&maps, start);
		if (!mapping || !mrf_maps_private(mapping))
			break;
		start = mapping->end;
	}
	mrf_maps_fini(&maps);
	return start >= end;
}

unsigned mrf_maps_count(void)
{
	FILE *file = mrf_maps_open();
	unsigned lines = file ? lines_left(file) : 0;

	if (file)
		fclose(file);
	return lines;
}

unsigned mrf_maps_limit(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned limit = 65530; /* the kernel's own choice */

	if (file) {
		(void)!fscanf(file, "%u", &limit);
		fclose(file);
	}
	return limit;
}

void mrf_maps_fini(struct mrf_maps *maps)
{
	free(maps->mapping);
	*maps = (struct mrf_maps){ 0 };
}

const struct mrf_mapping *mrf_maps_at(const struct mrf_maps *maps, uint64_t addr)
{
	unsigned lo = 0, hi = maps->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (maps->mapping[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == maps->count || maps->mapping[lo].start > addr)
		return NULL;
	return &maps->mapping[lo];
}

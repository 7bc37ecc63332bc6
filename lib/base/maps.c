/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/maps.h"

/* Reads the rest of a line: does it begin with text, but for blanks? */
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
	int n = fscanf(maps, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64,
		       &mapping->start, &mapping->end, mapping->perms, &mapping->inode);

	mapping->rdma = rest_begins(maps, "/dev/infiniband/");
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

static int append(struct mrf_maps *maps, const struct mrf_mapping *mapping)
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

int mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct mrf_mapping mapping;
	int ret = 0;

	if (!file)
		return -errno;
	maps->count = 0;
	while (!ret && mrf_maps_next(file, &mapping) && mapping.start < end) {
		if (mapping.end > start)
			ret = append(maps, &mapping);
	}
	fclose(file);
	return ret;
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

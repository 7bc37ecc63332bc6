/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <sys/mman.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/maps.h"
#include "base/page.h"
#include "base/present.h"

#define PAGES 256

/* --- around a page ---------------------------------------------------------------- */

/*
 * Looks at the pages of [start, end), or at as many of them as there is room for. 0:
 * unknown.
 */
static unsigned look_at_pages(uint64_t start, uint64_t end, unsigned char *there)
{
	unsigned n = (unsigned)((end - start) / mrf_page_size());

	return n && !mincore((void *)(uintptr_t)start, end - start, there) ? n : 0;
}

uint64_t mrf_present_down(uint64_t addr, uint64_t min)
{
	uint64_t page = mrf_page_size(), room = addr > min ? addr - min : 0;
	unsigned char there[PAGES];
	unsigned n;

	mrf_slow_call();
	room = mrf_min((room + page - 1) & ~(page - 1), PAGES * page);
	for (n = look_at_pages(addr - room, addr, there); n && there[n - 1] & 1; n--)
		addr -= page;
	return addr;
}

uint64_t mrf_present_up(uint64_t addr, uint64_t max)
{
	uint64_t page = mrf_page_size(), room = max > addr ? max - addr : 0;
	unsigned char there[PAGES];
	unsigned i, n;

	mrf_slow_call();
	room = mrf_min((room + page - 1) & ~(page - 1), PAGES * page);
	n = look_at_pages(addr, addr + room, there);
	for (i = 0; i < n && there[i] & 1; i++)
		addr += page;
	return addr;
}

/* --- everywhere ------------------------------------------------------------------- */

#define STEP 1024 /* pages at a time */

static void lose_patience(struct mrf_present *look, uint64_t pages)
{
	uint64_t cost = mrf_max(pages, (uint64_t)MRF_PRESENT_GAP);

	if (pages)
		look->patience -= mrf_min(look->patience, cost);
}

static unsigned run_of(const unsigned char *there, unsigned from, unsigned n, bool is)
{
	unsigned i = from;

	while (i < n && (there[i] & 1) == is)
		i++;
	return i - from;
}

static int tell_runs(struct mrf_present *look, uint64_t addr, const unsigned char *there,
		     unsigned n)
{
	uint64_t page = mrf_page_size();
	unsigned i = 0, run;
	int ret = 0;

	while (i < n && look->patience && !ret) {
		run = run_of(there, i, n, false);
		lose_patience(look, run);
		i += run;
		run = look->patience ? run_of(there, i, n, true) : 0;
		if (run)
			ret = look->found(look->arg, addr + i * page, addr + (i + run) * page);
		i += run;
	}
	return ret;
}

/* *start: how far it came, which is end or a place that is not mapped. */
static int walk(struct mrf_present *look, uint64_t *start, uint64_t end)
{
	uint64_t page = mrf_page_size();
	unsigned char there[STEP];
	int ret = 0;

	while (*start < end && look->patience && !ret) {
		uint64_t len = mrf_min(end - *start, STEP * page);

		if (mincore((void *)(uintptr_t)*start, len, there))
			break;
		ret = tell_runs(look, *start, there, (unsigned)(len / page));
		*start += len;
	}
	return ret;
}

static int walk_mappings(struct mrf_present *look, const struct mrf_maps *maps, uint64_t start,
			 uint64_t end)
{
	int ret = 0;
	unsigned i;

	for (i = 0; i < maps->count && !ret; i++) {
		const struct mrf_mapping *mapping = &maps->mapping[i];
		uint64_t low = mrf_max(start, mapping->start);

		/* One that has changed since ends where it does. */
		if (mrf_maps_pinnable(mapping, false))
			ret = walk(look, &low, mrf_min(end, mapping->end));
	}
	return ret;
}

int mrf_present_look(struct mrf_present *look, uint64_t start, uint64_t end)
{
	uint64_t mask = mrf_page_size() - 1;
	struct mrf_maps maps = { 0 };
	int ret;

	mrf_slow_call();
	start &= ~mask;
	/* The last page of all is nobody's. */
	end = end > ~mask ? ~mask : (end + mask) & ~mask;
	ret = walk(look, &start, end);
	if (ret || start >= end || !look->patience)
		return ret;
	ret = mrf_maps_look(&maps, start, end);
	if (!ret)
		ret = walk_mappings(look, &maps, start, end);
	mrf_maps_fini(&maps);
	return ret;
}

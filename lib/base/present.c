/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/mman.h>
#include "base/compiler.h"
#include "base/page.h"
#include "base/present.h"

#define PAGES 256

/* The pages of [start, end), or as many of them as there is room for. 0: not to be known. */
static unsigned look(uint64_t start, uint64_t end, unsigned char *there)
{
	unsigned n = (unsigned)((end - start) / mrf_page_size());

	return n && !mincore((void *)(uintptr_t)start, end - start, there) ? n : 0;
}

uint64_t mrf_present_down(uint64_t addr, uint64_t min)
{
	uint64_t page = mrf_page_size(), room = addr > min ? addr - min : 0;
	unsigned char there[PAGES];
	unsigned n;

	room = mrf_min((room + page - 1) & ~(page - 1), PAGES * page);
	for (n = look(addr - room, addr, there); n && there[n - 1] & 1; n--)
		addr -= page;
	return addr;
}

uint64_t mrf_present_up(uint64_t addr, uint64_t max)
{
	uint64_t page = mrf_page_size(), room = max > addr ? max - addr : 0;
	unsigned char there[PAGES];
	unsigned i, n;

	room = mrf_min((room + page - 1) & ~(page - 1), PAGES * page);
	n = look(addr, addr + room, there);
	for (i = 0; i < n && there[i] & 1; i++)
		addr += page;
	return addr;
}

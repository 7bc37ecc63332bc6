/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <stdlib.h>
#include <string.h>
#include "../runtime/rig.h"
#include "fab.h"
#include "placed.h"

static const struct rig *rig;

static void *make(size_t size)
{
	return rig->make(RT_DEVICE, 0, size);
}

static void unmake(void *mem)
{
	rig->unmake(RT_DEVICE, mem);
}

static void put(void *to, const void *from, size_t len)
{
	rig->put(to, from, len);
}

static void get(void *to, const void *from, size_t len)
{
	rig->get(to, (void *)(uintptr_t)from, len);
}

static struct buf_memory memory = { make, unmake, put, get, FI_HMEM_SYSTEM };

static int runtime_number(const char *name)
{
	static const char *const names[RIGS] = { "cuda", "rocr", "ze" };

	for (int i = 0; i < RIGS; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	case_fail("MRFAB_FUNC_MEMORY: there is no runtime %s", name);
}

void placed_open(bool peer)
{
	const char *place = getenv("MRFAB_FUNC_MEMORY");
	const char *runtime = place ? strchr(place, ':') : NULL;
	static struct rig_control control;

	if (!place)
		return;
	must(runtime, "MRFAB_FUNC_MEMORY: no runtime");
	rig = rig_load(runtime_number(runtime + 1), &control);
	memory.iface = rig->iface;
	fab_placed = FI_MR_HMEM;
	if (!strncmp(place, "both:", 5) || !strncmp(place, peer ? "far:" : "near:", 5 - peer))
		buf_memory = &memory;
}

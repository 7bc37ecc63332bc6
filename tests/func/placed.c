/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <stdlib.h>
#include <string.h>
#include "../runtime/rig.h"
#include "fab.h"
#include "placed.h"

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
	struct rig_control control;
	const struct rig *rig;

	if (!place)
		return;
	must(runtime, "MRFAB_FUNC_MEMORY: no runtime");
	rig = rig_load(runtime_number(runtime + 1), &control);
	fab_placed = FI_MR_HMEM;
	if (!strncmp(place, "both:", 5) || !strncmp(place, peer ? "far:" : "near:", 5 - peer))
		buf_rig = rig;
}

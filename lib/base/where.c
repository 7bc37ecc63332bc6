/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/where.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/gate.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* As the object's own tables count: from its beginning, unless it has a fixed place. */
static uintptr_t place_in(const Dl_info *info, uintptr_t at)
{
	const ElfW(Ehdr) *head = info->dli_fbase;

	return head->e_type == ET_EXEC ? at : at - (uintptr_t)info->dli_fbase;
}

void mrf_where_text(const void *returns_to, char *buf, size_t len)
{
	/* The call itself: what stands behind it may belong to another line or function. */
	uintptr_t at = (uintptr_t)returns_to - 1;
	Dl_info info;
	int found;

	mrf_gate_enter(MRF_GATE_LOADER);
	found = returns_to && dladdr((void *)at, &info) && info.dli_fname;
	mrf_gate_leave(MRF_GATE_LOADER);
	if (!found)
		snprintf(buf, len, "%p", returns_to);
	else if (info.dli_sname)
		snprintf(buf, len, "%s+%#lx (%s+%#lx)", info.dli_sname,
			 at - (uintptr_t)info.dli_saddr, base_name(info.dli_fname),
			 place_in(&info, at));
	else
		snprintf(buf, len, "%s+%#lx", base_name(info.dli_fname), place_in(&info, at));
}

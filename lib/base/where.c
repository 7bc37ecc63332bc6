/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/where.h"

#include <dlfcn.h>
#include <link.h>
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

/* at: in the object that info is about. */
static void fill_place(struct mrf_where *where, const Dl_info *info, uintptr_t at)
{
	where->place = place_in(info, at);
	snprintf(where->object, sizeof(where->object), "%s", base_name(info->dli_fname));
	if (!info->dli_sname)
		return;
	where->offset = at - (uintptr_t)info->dli_saddr;
	snprintf(where->function, sizeof(where->function), "%s", info->dli_sname);
}

void mrf_where_find(const void *returns_to, struct mrf_where *where)
{
	/* The call itself: what stands behind it may belong to another line or function. */
	uintptr_t at = (uintptr_t)returns_to - 1;
	Dl_info info;

	*where = (struct mrf_where){ .place = (uintptr_t)returns_to };
	mrf_gate_enter(MRF_GATE_LOADER);
	if (returns_to && dladdr((void *)at, &info) && info.dli_fname)
		fill_place(where, &info, at);
	mrf_gate_leave(MRF_GATE_LOADER);
}

void mrf_where_text(const void *returns_to, char *buf, size_t len)
{
	struct mrf_where where;

	mrf_where_find(returns_to, &where);
	if (!*where.object)
		snprintf(buf, len, "%p", returns_to);
	else if (*where.function)
		snprintf(buf, len, "%s+%#lx (%s+%#lx)", where.function, where.offset, where.object,
			 where.place);
	else
		snprintf(buf, len, "%s+%#lx", where.object, where.place);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/where.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

/* The loader knows the program by how it was called, and has no name for it in its list. */
static bool is_program(const struct link_map *object)
{
	return !*object->l_name;
}

void mrf_where_path(const void *returns_to, char path[PATH_MAX])
{
	struct link_map *object = NULL;
	ssize_t n = -1;
	Dl_info info;

	*path = '\0';
	mrf_gate_enter(MRF_GATE_LOADER);
	if (returns_to &&
	    dladdr1((const char *)returns_to - 1, &info, (void **)&object, RTLD_DL_LINKMAP) &&
	    object) {
		if (is_program(object))
			n = readlink("/proc/self/exe", path, PATH_MAX - 1);
		if (n > 0)
			path[n] = '\0';
		else if (info.dli_fname && !realpath(info.dli_fname, path))
			snprintf(path, PATH_MAX, "%s", info.dli_fname);
	}
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
